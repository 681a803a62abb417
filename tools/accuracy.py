#!/usr/bin/env python3
"""Writes how far off predictions are, with what `windtunnel validate` says now:

  tools/accuracy.py [PROGRAM] [--check]      (default: build/release/windtunnel; --check changes no page, and fails where one is not up to date)

Between "<!-- score card:begin -->" and "<!-- score card:end -->" of docs/accuracy.md: every set. Between "<!-- accuracy:begin -->" and
"<!-- accuracy:end -->" of README.md: one row for each kind of run, over all rows of the sets that were never fitted. How many verdicts on
memory were right also stands in docs/tasks.md, and how large an error usually is in docs/accuracy.md and docs/model.md. Also the pictures
docs/img/accuracy.svg and docs/img/kernels-*.svg.
"""
import json
import pathlib
import re
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
from leave_one_set_out import fitted_allowance  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
ORDER_RIVALS = {"amp-t4": "AMP 0.935 (on all 47)", "amp-t4-v100-mixed": "AMP 0.394"}
CHECKS = "--check" in sys.argv
SMALL_SET = 5  # rows: smaller ones, never fitted, share a row of the score card
LARGE_REGRET = 0.05  # smaller ones are only counted
# Who ran a set that was never fitted. Whether its stack has a profile says validation/residuals.json. Of those that have one, other stacks than those of
# published recipes and of the sets that constants were fitted on:
KNOWN, OTHER, NO_PROFILE, NO_PROFILE_EXPERTS = ("a stack with a profile, or a published recipe", "another stack, on GPUs that were measured",
                                                "a stack without a profile", "experts on a stack without a profile")
OTHER_SETS = ("fms-fsdp", "internevo-a100-7b", "megatron-sc21-zero3")


def percent(value, form=".1f"):
    return "" if value is None else f"{100 * value:{form}}"


def table(*rows):
    head, *body = [" | ".join(str(cell) for cell in row).rstrip() for row in rows]
    return "\n".join([head, "|".join(["---"] * len(rows[0])), *body])


def inside(points, unit=""):
    """The share of the points with an interval that lie in it, in %."""
    found = [p["interval_s"][0] <= p["measured_s"] <= p["interval_s"][1] for p in points if p.get("interval_s")]
    return f"{100 * sum(found) / len(found):.0f}{unit}" if found else ""


def together(sets, points):
    """One row of the score card for sets that are too small for one of their own."""
    names = {s["set"] for s in sets}
    points = [p for p in points if p["set"] in names and p.get("error") is not None]
    errors = [p["error"] for p in points]
    sizes = [abs(error) for error in errors]
    return (f"{len(names)} smaller sets", len(points), f"**{percent(statistics.mean(sizes))}**", percent(statistics.median(sizes)),
            percent(max(sizes)), percent(statistics.mean(errors), "+.1f"), "", inside(points), "never")


def score_card(sets, points):
    small = [s for s in sets if s.get("never_fitted") and 0 < s["scored"] < SMALL_SET]
    timed = [s for s in sets if s.get("out_of_memory")]
    ordered = [s for s in sets if s["set"] in ORDER_RIVALS and s.get("spearman_rho")]
    parts = ["Iteration times, errors in %:", table(
        ("set", "scored", "mean", "median", "worst", "bias", "bar to clear", "inside, %", "fitted on it"),
        *((s["set"], s["scored"] if s["scored"] == s["points"] else f"{s['scored']}/{s['points']}", f"**{percent(s.get('mape'))}**",
           percent(s.get("median_ape")), percent(s.get("worst_ape")), percent(s.get("bias"), "+.1f"), percent(s.get("naive_mape")),
           percent(s.get("interval_coverage"), ".0f"), "never" if s.get("never_fitted") else len(s["fitted_on_this_set"])) for s in timed if s["scored"] and s not in small),
        *([together(small, points)] if small else []))]
    if small:
        parts += [f"Fewer than {SMALL_SET} rows: " + ", ".join(s["set"] for s in small)]
    parts += ["Order of plans that train one model on the same GPUs:", "\n".join(
        f"- {s['set']} ({group}, {s['scored']} plans): Spearman **{rho:.3f}**; {ORDER_RIVALS[s['set']]}"
        for s in ordered for group, rho in list(s["spearman_rho"].items())[:1])]
    regrets = {(s["set"], group): regret for s in timed for group, regret in s.get("top1_regret", {}).items()}
    large = "; ".join(f"{name}{', ' * bool(group)}{group}: {percent(regret)} %" for (name, group), regret in regrets.items() if regret >= LARGE_REGRET)
    parts += [f"Taking the plan predicted fastest costs nothing in {sum(percent(regret) == '0.0' for regret in regrets.values())} of {len(regrets)} groups "
              f"and less than {percent(LARGE_REGRET, '.0f')} % in the others, but for {large}."]
    parts += ["Memory, mean errors in %:", "\n".join(
        f"- {name}: " + ", ".join(f"{s['set']} {percent(s[key], form)}" for s in timed if s.get(key))
        for name, key, form in (("allocated", "memory_allocated_mape", ".2f"), ("reserved", "memory_reserved_mape", ".1f"),
                                ("by nvidia-smi", "memory_smi_mape", ".1f")))]
    # Small models that are read for their peaks alone fit in any case.
    caught, missed, refused, ran = (sum(s["out_of_memory"][key] for s in timed if s["scored"]) for key in ("caught", "missed", "refused_that_ran", "ran"))

    def wrong(key):
        return ", ".join(f"{s['set']} {s['out_of_memory'][key]}" for s in timed if s["out_of_memory"][key])
    parts += [f"Of {caught + missed} runs that ran out of memory, {caught} are refused (accepted: {wrong('missed')}). "
              f"Of {ran + refused} that ran, {ran} are accepted (refused: {wrong('refused_that_ran')})."]
    parts += ["Timers of the last pipeline stage, mean errors: " + "; ".join(
        f"{s['set']} forward {percent(s['timers_mape']['forward-compute'])} %, backward {percent(s['timers_mape'].get('backward-compute'))} %"
        for s in sets if "forward-compute" in s.get("timers_mape", {})) + "."]
    parts += ["Collectives, errors in %; the bar is one constant bus bandwidth fitted on the same rows:", table(
        ("set", "points", "mean", "median", "worst", "bar to clear"),
        *((s["set"], s["scored"], f"**{percent(s['mape'])}**", percent(s["median_ape"]), percent(s["worst_ape"]), percent(s.get("naive_mape")))
          for s in sets if not s.get("out_of_memory") and s.get("mape") is not None))]
    return "\n\n".join(parts)


def who_ran(name, unseen):
    ran = unseen["sets"][name]
    if not set(ran["software"]) & set(unseen["profiles"]):
        return NO_PROFILE_EXPERTS if ran.get("experts") else NO_PROFILE
    return OTHER if name in OTHER_SETS else KNOWN


def kinds_of_runs(answer):
    """One row for each kind of run, and one for what fits, over the sets that were never fitted."""
    unseen = json.loads((ROOT / "validation/residuals.json").read_text())["unseen"]
    never_fitted = {s["set"] for s in answer["sets"] if s.get("never_fitted") and s["set"] in unseen["sets"]}
    assert never_fitted >= set(OTHER_SETS)
    rows = [("who ran it", "rows", "mean error", "median", "inside the 90 % interval")]
    for who in (KNOWN, OTHER, NO_PROFILE, NO_PROFILE_EXPERTS):
        points = [p for p in answer["points"] if p["set"] in never_fitted and p.get("error") is not None and who_ran(p["set"], unseen) == who]
        errors = [abs(p["error"]) for p in points]
        rows.append((who, len(errors), f"{percent(statistics.mean(errors))} %", f"{percent(statistics.median(errors))} %", inside(points, " %")))
    return table(*rows) + "\n\n" + memory_verdicts(answer, "Of all {1} runs of sets on which nothing was fitted, also those that ran out of memory, "
                                                    "the verdict on memory was right for {0}.")


def memory_verdicts(answer, sentence):
    """The sentence with how many verdicts on memory were right, and of how many, over the sets that were never fitted."""
    verdicts = [s["out_of_memory"] for s in answer["sets"] if s.get("never_fitted") and s.get("out_of_memory")]
    right, all_runs = (sum(v[key] for v in verdicts for key in keys) for keys in (("caught", "ran"), ("caught", "missed", "refused_that_ran", "ran")))
    return sentence.format(right, all_runs)


def allowances():
    """Of the difference of two predictions and of one, as sentences of the documentation say them."""
    residuals = json.loads((ROOT / "validation/residuals.json").read_text())
    pairs, unseen = residuals["pairs"], residuals["unseen"]
    allowance = fitted_allowance([list(zip(ran["residuals"], ran["outside_kernels"])) for ran in unseen["sets"].values()
                                  if set(ran["software"]) & set(unseen["profiles"])])
    return (f"in the median {percent(pairs['same'])} %, plus {percent(pairs['moved'], '.0f')} % of the share",
            f"An allowance is {allowance(0):.3f} + {allowance(1) - allowance(0):.3f} × the share")


def replace(page, pattern, text):
    """Puts `text` where the pattern is found, once, on the page. With --check the page stays, and a difference ends the program."""
    before = page.read_text()
    after, count = re.subn(pattern, lambda _: text, before, flags=re.DOTALL)
    if count != 1:
        sys.exit(f"error: {page} has no single place for {text.splitlines()[0]}")
    if CHECKS and after != before:
        sys.exit(f"error: {page.relative_to(ROOT)} does not say what validate says now; run tools/accuracy.py. It should say:\n{text}")
    if not CHECKS:
        page.write_text(after)
    print(f"{page.relative_to(ROOT)} {'is up to date' if after == before else 'updated: look at the difference before you commit it'}")


def replace_between_marks(page, name, text):
    begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
    replace(page, f"{begin}.*?{end}", f"{begin}\n{text}\n\n{end}")


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    program = pathlib.Path(arguments[0] if arguments else ROOT / "build/release/windtunnel").resolve()
    picture = [] if CHECKS else ["--svg", ROOT / "docs/img/accuracy.svg"]
    done = subprocess.run([program, "validate", "--quiet", "--json", *picture], capture_output=True, text=True, cwd=ROOT)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    answer = json.loads(done.stdout)
    replace_between_marks(ROOT / "docs/accuracy.md", "score card", score_card(answer["sets"], answer["points"]))
    replace_between_marks(ROOT / "README.md", "accuracy", kinds_of_runs(answer))
    replace(ROOT / "docs/tasks.md", r"right for \d+ of \d+ measured runs", memory_verdicts(answer, "right for {0} of {1} measured runs"))
    of_pairs, of_one = allowances()
    replace(ROOT / "docs/accuracy.md", r"in the median [\d.]+ %, plus \d+ % of the share", of_pairs)
    replace(ROOT / "docs/model.md", r"An allowance is [\d.]+ \+ [\d.]+ × the share", of_one)
    if CHECKS:
        return
    for device in ("h100-sxm-80gb", "b200"):
        subprocess.run([program, "device", device, "--kernels", "--quiet", "--svg", ROOT / f"docs/img/kernels-{device}.svg"],
                       stdout=subprocess.DEVNULL, check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
