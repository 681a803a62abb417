"""Runs scenarios in this process, by the Python module; what the module cannot do, by the program."""
import json
import re

from promises import MEMORY, Broken, Refused, Runner, check_message


class ModuleRunner(Runner):
    """Answers `run FILE --json --memory`, `explain FILE --json` and `show FILE --resolved` a hundred times faster than a process of the program."""

    def __init__(self, module, program, root, folder):
        super().__init__(program, root, folder)
        self.module, self.searches_placement = module, {}

    def write(self, document, name="scenario.json"):
        self.searches_placement[name] = document.get("parallel", {}).get("placement") == "search"
        return super().write(document, name)

    def command(self, *arguments):
        name, file, *options = arguments
        answer = {("run", *MEMORY): self.run, ("explain", "--json"): self.explain, ("show", "--resolved"): self.show}.get((name, *options))
        if answer is None:
            return super().command(*arguments)
        if name == "run" and any(self.searches_placement[each] for each in (file, "base.json")):  # which the module does not
            return super().command("run", file, *MEMORY, "--engine", "native")
        try:
            return answer(str(self.folder / file))
        except (self.module.InputError, self.module.UnsupportedError) as refusal:
            check_message(name, str(refusal))
            raise Refused(str(refusal).splitlines()[0]) from None
        except Exception as error:  # of ours: an assertion that does not hold
            where = re.search(r"(\w+\.cpp:\d+)", str(error))
            raise Broken(f"{name}: exit code 4 {where[1] if where else ''}".rstrip(), f"{type(error).__name__}: {error}") from None

    def run(self, file):
        scenario = self.module.Scenario(file)
        try:
            report = scenario.simulate()
        except self.module.InputError as error:
            scenario.to_dict()  # what cannot be read is refused here too
            raise Broken("check accepts what run refuses", str(error)) from None
        return int(not report.fits), report._handle.json(memory=True)

    def explain(self, file):
        return 0, json.dumps(self.module.explain(file, threads=1))

    def show(self, file):
        return 0, json.dumps(self.module.Scenario(file).to_dict())
