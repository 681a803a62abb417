#!/usr/bin/env python3
"""Adds each example of docs/extending.md to a scratch copy of the tree, builds what it changes, and runs its commands.

  tools/extending_test.py BUILD [--page FILE] [--only TITLE]

BUILD is a build folder of Ninja in which `windtunnel` is built. An example is a section "## TITLE" with

  Files that change: 3.                                   new ones and changed ones together; text may follow

  New file `sim/plan/schedules/toy.cpp`:                  then a fenced block: the whole file
  In `sim/plan/schedules.def`, below `WT_SCHEDULE(x)`:    then a fenced block: lines that go there. Or "above", or "in place of".
                                                          The line in quotes is a whole line of the file, without its indent, and
                                                          there is one such line
  ```console                                              commands and what they print, in the form of tools/check_docs.sh. They
  $ windtunnel run …                                      run in the scratch copy, where windtunnel is the program with the example
  ```

Sections without "Files that change" are text. An example fails when more or fewer files change than it says, when a new source file is in no
list of CMake, when more than `most_files` change, when it does not compile or link, when the layers or the scenario reference no longer hold, or when a command prints something else.

Nothing is built in full: CMake configures the scratch copy; the sources that the example adds, changes, or reaches through a header, a table or an embedded text
are compiled as CMake says; all other objects are those of BUILD. The schema and the reference of keys are then written anew, and do not count. An example that reaches more than `most_objects` of them is refused: a new entry of
a table should touch no header that the program shares.
"""
import argparse
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
most_objects = 12
most_files = 4  # what it adds, its lines in two tables, and a test
CHANGE = re.compile(r"In `([^`]+)`, (below|above|in place of) `([^`]+)`:$")
NEW_FILE = re.compile(r"New file `([^`]+)`:$")
GENERATED = ["docs/scenario.schema.json", "docs/scenario-reference.md"]
COUNT = re.compile(r"Files that change: (\d+)\b")


class Failure(Exception):
    pass


class Example:
    """A section of the page."""

    def __init__(self, title, lines):
        self.title, self.count = title, None
        self.new_files, self.changes = [], []  # (path, text), (path, where, anchor, lines)
        self.console = ""
        self.read(lines)

    def read(self, lines):
        at, intent = 0, None
        while at < len(lines):
            line = lines[at].rstrip()
            at += 1
            if line.startswith("```"):
                end = next((i for i in range(at, len(lines)) if lines[i].rstrip() == "```"), None)
                if end is None:
                    raise Failure("a fenced block has no end")
                self.take_block(line[3:], intent, lines[at:end])
                at, intent = end + 1, None
            elif found := NEW_FILE.match(line) or CHANGE.match(line):
                intent = found.groups()
            elif found := COUNT.match(line):
                self.count = int(found[1])

    def take_block(self, language, intent, block):
        text = "\n".join(block) + "\n"
        if intent is None and language == "console":
            self.console += f"```console\n{text}```\n"
        elif intent is not None and len(intent) == 1:
            self.new_files.append((intent[0], text))
        elif intent is not None:
            self.changes.append((*intent, text))


def read_examples(page):
    sections = re.split(r"^## (.*)$", page.read_text(), flags=re.MULTILINE)[1:]
    examples = [Example(title, body.splitlines()) for title, body in zip(sections[::2], sections[1::2])]
    return [each for each in examples if each.count is not None]


def counted(files):
    return "1 file" if files == 1 else f"{files} files"


def run(command, folder, what):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          shell=isinstance(command, str))
    if done.returncode != 0:
        raise Failure(f"{what}:\n{done.stdout[-4000:]}")
    return done.stdout


class Scratch:
    """A copy of the tree in which examples are tried, one after the other."""

    def __init__(self, folder, build):
        self.tree, self.build, self.real_build = folder / "tree", folder / "build", build
        shutil.copytree(ROOT, self.tree, ignore=lambda at, names: [
            name for name in names if name == "__pycache__" or (at == str(ROOT) and name in (".git", "build", "out", "wt"))])
        self.touched = []

    def path(self, name):
        path = (self.tree / name).resolve()
        if self.tree.resolve() not in path.parents:
            raise Failure(f"{name} is not in the tree")
        return path

    def apply(self, example):
        for name, text in example.new_files:
            path = self.path(name)
            if path.exists():
                raise Failure(f"{name} is there already")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            self.touched.append(name)
        for name, where, anchor, text in example.changes:
            self.insert(name, where, anchor, text)
        changed = sorted(set(self.touched))
        if len(changed) != example.count:
            raise Failure(f"changes {counted(len(changed))} and says {example.count}: {', '.join(changed)}")
        if len(changed) > most_files:
            raise Failure(f"changes {counted(len(changed))}, more than {most_files}")
        return changed

    def insert(self, name, where, anchor, text):
        path = self.path(name)
        lines = path.read_text().splitlines(keepends=True)
        places = [i for i, line in enumerate(lines) if line.strip() == anchor]
        if len(places) != 1:
            raise Failure(f"{name} has {len(places)} lines `{anchor}`, not one")
        first = places[0] + (1 if where == "below" else 0)
        last = places[0] + (0 if where == "above" else 1)
        lines[first:last] = [text]
        path.write_text("".join(lines))
        self.touched.append(name)

    def write_generated(self, program):
        """The pages that are made from the program's tables: nobody changes them by hand, so they do not count."""
        reference = [sys.executable, self.tree / "tools/scenario_reference.py"]
        run([*reference, program], self.tree, "the reference cannot be written")
        self.touched += GENERATED

    def restore(self):
        for name in set(self.touched):
            original = ROOT / name
            if original.exists():
                shutil.copy2(original, self.tree / name)
            else:
                (self.tree / name).unlink(missing_ok=True)
        self.touched = []

    def cached(self, key):
        """A value of BUILD's CMake cache."""
        found = re.search(rf"^{key}:\w+=(.*)$", (self.real_build / "CMakeCache.txt").read_text(), re.MULTILINE)
        return found[1] if found else ""

    def configure(self):
        """CMake's view of the tree as it is now, without tests; the compiler and its options are those of BUILD, but nothing is optimised."""
        keys = ["CMAKE_CXX_COMPILER", "CMAKE_CXX_FLAGS", "CMAKE_CXX_COMPILER_LAUNCHER", "WINDTUNNEL_UNITY"]
        flags = re.sub(r"-O\w+", "", self.cached("CMAKE_CXX_FLAGS_" + self.cached("CMAKE_BUILD_TYPE").upper()))
        options = [f"-D{key}={self.cached(key)}" for key in keys if self.cached(key)]
        options += ["-DCMAKE_BUILD_TYPE=Debug", f"-DCMAKE_CXX_FLAGS_DEBUG={flags} -O0"]
        run(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", *options, "-DBUILD_TESTING=OFF",
             "-DWINDTUNNEL_BENCHMARKS=OFF", "-DWINDTUNNEL_PRECOMPILED_HEADERS=OFF"], self.tree, "CMake does not take it")

    def ninja(self, *arguments):
        return run(["ninja", *arguments], self.build, "Ninja does not take it")

    def outputs_of(self, path):
        """The files that CMake makes of this one directly."""
        done = subprocess.run(["ninja", "-t", "query", str(path)], cwd=self.build, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        outputs = re.search(r"^  outputs:\n((?:    .*\n)*)", done.stdout, re.MULTILINE)
        return outputs[1].split() if outputs else []

    def compiled_as(self, path):
        """The file that the compiler is given: one that CMake has made of this and its neighbours, where it compiles them together."""
        include = f'#include "{path}"'
        for unity in self.build.rglob("Unity/*.cxx"):
            if include in unity.read_text():
                return unity
        return path

    def readers(self):
        """By file of the tree: the objects whose compilers read it, in BUILD."""
        readers, target = {}, ""
        for line in run(["ninja", "-t", "deps"], self.real_build, "Ninja knows no dependencies").splitlines():
            if line.startswith("    "):
                readers.setdefault(str((self.real_build / line.strip()).resolve()), set()).add(target)
            elif ":" in line:
                target = line.split(":")[0]
        return readers

    def reached_objects(self, changed):
        """The objects of the program that must be compiled, as the scratch build names them. Embedded texts are made anew."""
        objects, known = set(), set(self.ninja("-t", "targets", "all").replace(":", " ").split())
        readers = None
        for name in changed:
            if not name.startswith(("sim/", "tools/windtunnel/")) or name.endswith("CMakeLists.txt"):
                continue
            queue = self.outputs_of(self.compiled_as(self.tree / name))
            if name.endswith(".cpp") and not queue:
                raise Failure(f"{name} is not built: no list of CMake names it")
            while queue:
                output = queue.pop()
                if output.endswith(".o"):
                    objects.add(output)
                elif output.endswith((".cpp", ".hpp")):
                    self.ninja(output)
                    queue += self.outputs_of(output)
            readers = self.readers() if readers is None else readers
            objects |= readers.get(str((ROOT / name).resolve()), set()) & known
        if len(objects) > most_objects:
            raise Failure(f"{len(objects)} sources must be compiled anew: a new entry should touch no shared header")
        return sorted(objects)

    def commands_of(self, target):
        return self.ninja("-t", "commands", target).splitlines()

    def built_before(self, command):
        """The command with files that only BUILD has taken from there."""
        words = [str(self.real_build / word) if word.endswith((".o", ".a")) and not word.startswith("/")
                 and not (self.build / word).exists() else word for word in shlex.split(command)]
        return " ".join(word if word in ("&&", ":") else shlex.quote(word) for word in words)

    def program(self, changed):
        """The program with the example."""
        if not any(name.startswith(("sim/", "tools/windtunnel/")) for name in changed):
            return self.real_build / "windtunnel"
        self.configure()
        objects = self.reached_objects(changed)
        archives = set()
        for name in objects:
            (self.build / name).parent.mkdir(parents=True, exist_ok=True)
            run(self.commands_of(name)[-1], self.build, f"{name} does not compile")
            if found := re.match(r"(.*)/CMakeFiles/(.*)\.dir/", name):
                archives.add(f"{found[1]}/lib{found[2]}.a")
        link = self.commands_of("windtunnel")[-1]
        for archive in archives & set(shlex.split(link)):
            command = self.built_before(self.commands_of(archive)[-1])
            run(command.replace(str(self.real_build / archive), archive), self.build, f"{archive} cannot be made")
        run(self.built_before(link), self.build, "the program does not link")
        for module in self.real_build.glob("*.so"):  # which the program loads from next to itself
            shutil.copy2(module, self.build)
        return self.build / "windtunnel"

    def clean(self):
        """Leaves no object or archive to the next example."""
        if self.build.exists():
            for path in [*self.build.rglob("*.o"), *self.build.rglob("*.a"), self.build / "windtunnel"]:
                path.unlink(missing_ok=True)


def check_example(example, scratch):
    changed = scratch.apply(example)
    if not example.console:
        raise Failure("has no ```console block")
    program = scratch.program(changed)
    run([scratch.tree / "tools/check_layers.sh"], scratch.tree, "the layers do not hold")
    scratch.write_generated(program)
    page = scratch.tree.parent / "example.md"
    page.write_text(example.console)
    run([scratch.tree / "tools/check_docs.sh", program, page], scratch.tree, "its commands")
    return changed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs/extending.md")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    examples = [each for each in read_examples(arguments.page) if arguments.only in each.title]
    if not examples:
        sys.exit(f"{arguments.page} has no example")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(pathlib.Path(folder), arguments.build.resolve())
        for example in examples:
            try:
                changed = check_example(example, scratch)
                print(f"{example.title}: changes {counted(len(changed))}, as it says")
            except Failure as failure:
                failures += 1
                print(f"{example.title}: {failure}")
            scratch.restore()
            scratch.clean()
    if failures:
        sys.exit(f"{failures} of {len(examples)} examples do not do what docs/extending.md says")


if __name__ == "__main__":
    main()
