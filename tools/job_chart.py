#!/usr/bin/env python3
"""Draws training runs side by side: days, cost, energy and failures, each median with a line that holds 90 % of runs.

  tools/job_chart.py OUT.svg RUN.json...          RUN.json: what `windtunnel job --json` printed
"""
import html
import json
import pathlib
import sys

COLOURS = ("#3d7cc0", "#e5892b", "#5b9a3c", "#8457b8")
PANEL, ROW, LEFT, TOP = 250, 46, 20, 70


def figures(run):
    cost = run.get("cost")
    return [("days", run["days"], 1, "{:.1f}"),
            (f"cost, million {cost['currency']}" if cost else "cost", cost, 1e6, "{:.2f}"),
            ("energy, MWh", run.get("energy_mwh"), 1, "{:,.0f}"),
            ("failures", run["failures"]["count"], 1, "{:.0f}")]


def panel(index, runs):
    x0 = LEFT + index * PANEL
    columns = [figures(run)[index] for run in runs]
    most = max((spread["p95"] for _, spread, _, _ in columns if spread), default=0) or 1
    lines = [f'<text x="{x0}" y="{TOP - 14}" font-weight="bold">{html.escape(columns[0][0])}</text>']
    for row, (_, spread, unit, pattern) in enumerate(columns):
        y = TOP + row * ROW
        if not spread:
            continue
        width = (PANEL - 90) / most
        lines.append(f'<rect x="{x0}" y="{y}" width="{spread["median"] * width:.1f}" height="26" rx="3" fill="{COLOURS[row % len(COLOURS)]}"/>')
        lines.append(f'<line x1="{x0 + spread["p5"] * width:.1f}" x2="{x0 + spread["p95"] * width:.1f}" y1="{y + 13}" y2="{y + 13}" stroke="#16202b" stroke-width="2"/>')
        lines.append(f'<text x="{x0 + spread["p95"] * width + 6:.1f}" y="{y + 18}">{pattern.format(spread["median"] / unit)}</text>')
    return lines


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    runs = [json.loads(pathlib.Path(path).read_text()) for path in sys.argv[2:]]
    height = TOP + ROW * len(runs) + 20 + 22 * len(runs)
    width = LEFT + 4 * PANEL
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif" font-size="13">',
             f'<rect width="{width}" height="{height}" fill="#ffffff" rx="8"/>',
             f'<text x="{LEFT}" y="26" font-size="16">Training runs side by side: median of {runs[0]["draws"]:,} draws, line: 90 % of runs</text>']
    for index in range(4):
        lines += panel(index, runs)
    for row, run in enumerate(runs):
        y = TOP + ROW * len(runs) + 14 + 22 * row
        lines.append(f'<rect x="{LEFT}" y="{y}" width="14" height="14" fill="{COLOURS[row % len(COLOURS)]}"/>')
        lines.append(f'<text x="{LEFT + 22}" y="{y + 12}">{html.escape(run["name"])}: {run["gpus"]:,} GPUs, goodput {100 * run["goodput"]["median"]:.1f} %</text>')
    pathlib.Path(sys.argv[1]).write_text("\n".join(lines + ["</svg>"]) + "\n")


if __name__ == "__main__":
    main()
