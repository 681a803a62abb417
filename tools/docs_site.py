#!/usr/bin/env python3
"""Builds the site of the documentation: README.md, CONTRIBUTING.md, CHANGELOG.md and docs/, with search.

  tools/docs_site.py OUT [PROGRAM]    writes the site to the folder OUT; PROGRAM (build/release/windtunnel) is asked for the help of each command
  tools/docs_site.py --check          only checks that tools/docs_site/mkdocs.yml names each page of docs/ once, and no page that is not there

Needs Debian 12's mkdocs and mkdocs-material; no network, neither to build nor to read. Look at it with a browser: OUT/index.html
Exit code 1 when a page is missing, a link of the site is dead, or the site would load something from another host; 3 when mkdocs
or PROGRAM is missing.
"""
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

sys.dont_write_bytecode = True
import links  # noqa: E402

ROOT = links.ROOT
CONFIGURATION = ROOT / "tools/docs_site/mkdocs.yml"
COMMANDS = "docs/commands.md"  # written here


def navigation():
    """The pages that the configuration names, in order."""
    text = CONFIGURATION.read_text(encoding="utf-8").split("\nnav:", 1)[1]
    return re.findall(r"^ +- (?:.*: +)?(\S+\.md)$", re.split(r"\n\S", text, maxsplit=1)[0], re.MULTILINE)


def navigation_problems():
    """What is wrong between the pages that the configuration names and those that there are."""
    named = navigation()
    there = {COMMANDS} | {str(page.relative_to(ROOT)) for page in links.pages()}
    for page in sorted(set(named)):
        if page not in there and not (ROOT / page).exists():
            yield f"{page} is not there: take it out of 'nav' in tools/docs_site/mkdocs.yml"
        if named.count(page) > 1:
            yield f"{page} is {named.count(page)} times in 'nav' of tools/docs_site/mkdocs.yml"
    for page in sorted(there - set(named)):
        yield f"{page} is in no group: add it to 'nav' in tools/docs_site/mkdocs.yml"


def commands_page(program):
    """A page with the help of every command, as the program prints it 80 columns wide."""
    def ask(*words):
        environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "80"}
        return subprocess.run([program, *words], check=True, capture_output=True, text=True, env=environment).stdout.rstrip()
    overview = ask("--help")
    names = re.findall(r"^  ([a-z]+) ", overview.split("\nCommands:\n")[1].split("\n\n")[0], re.MULTILINE)
    page = ["# Commands", f"```text\n{overview}\n```"]
    for name in names:
        if name != "help":
            page += [f"## {name}", f"```text\n{ask(name, '--help')}\n```"]
    return "\n\n".join(page) + "\n"


def listing(folder):
    """A page that lists a folder: its pages by their titles, its other files by their names."""
    entries = [f"# {folder.relative_to(ROOT)}"]
    for file in sorted(folder.iterdir()):
        if file.is_file():
            title = re.search(r"^# (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE) if file.suffix == ".md" else None
            entries.append(f"- [{title[1] if title else file.name}]({urllib.parse.quote(file.name)})")
    return "\n".join(entries) + "\n"


class Stage:
    """A copy of the pages and of all that they link to, each file at its place in the repository."""

    def __init__(self, folder, program):
        self.folder = folder
        self.written = set()
        folder.mkdir()
        shutil.copyfile(CONFIGURATION.parent / "style.css", folder / "style.css")
        for page in navigation():
            if page != COMMANDS:
                self.add(ROOT / page)
        (folder / COMMANDS).write_text(commands_page(program), encoding="utf-8")

    def add(self, file):
        """Copies a file, of a folder its list; of pages, also what they link to."""
        file = file.resolve()
        if file in self.written:
            return
        self.written.add(file)
        text = None
        if file.is_dir():
            text, file = listing(file), file / "index.md"
        elif file.suffix == ".md":
            text = file.read_text(encoding="utf-8")
        copy = self.folder / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            shutil.copyfile(file, copy)
            return
        for _, target in set(links.links(text)):
            if links.is_elsewhere(target) or target.startswith("#"):
                continue
            meant, anchor = links.destination(file, target)
            if meant.is_dir():  # a link to a folder becomes one to its page
                page = "README.md" if (meant / "README.md").exists() else "index.md"
                text = text.replace(f"]({target})", f"]({target.split('#')[0].rstrip('/')}/{page}{'#' + anchor if anchor else ''})")
                self.add(meant / page if page == "README.md" else meant)
            elif meant.exists():
                self.add(meant)
        copy.write_text(text, encoding="utf-8")


class Page(html.parser.HTMLParser):
    """What an HTML page links to, loads, and can be linked to by."""

    LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src"}

    def __init__(self, text):
        super().__init__()
        self.names, self.links, self.loaded = {""}, [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.names.update(values[key] for key in ("id", "name") if values.get(key))
        if tag == "a" and values.get("href") is not None:
            self.links.append(values["href"])
        elif tag == "link" and values.get("href") and values.get("rel") != "canonical":
            self.loaded.append(values["href"])
        elif values.get(self.LOADED.get(tag)):
            self.loaded.append(values[self.LOADED[tag]])


def site_problems(site):
    """Dead links of the built pages, and what they would load from another host."""
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html")) if file.name != "404.html"}
    for file, page in pages.items():
        for target in page.links + page.loaded:
            where = f"{file.relative_to(site)}: {target}"
            if links.is_elsewhere(target):
                if target in page.loaded and not target.startswith("data:"):
                    yield f"{where} is loaded from another host"
                continue
            meant, anchor = links.destination(file, target.split("?")[0])
            if meant.is_dir():
                meant /= "index.html"
            if not meant.is_file():
                yield f"{where} is not there"
            elif meant in pages and anchor not in pages[meant].names:
                yield f"{where} has no such heading"
    for file in site.rglob("*.css"):
        for address in re.findall(r"url\([\"']?(https?:[^)\"']*)", file.read_text(encoding="utf-8")):
            yield f"{file.relative_to(site)}: {address} is loaded from another host"
    found = {entry["location"].split("#")[0] for entry in json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]}
    for page in navigation():
        location = re.sub("README.md$", "index.md", page)[:-len("md")] + "html"
        if location not in found and not (location == "index.html" and "" in found):
            yield f"{location} is not found by search"


def build(out, program):
    """Builds the site; what is wrong with it."""
    with tempfile.TemporaryDirectory() as scratch:
        stage = pathlib.Path(scratch) / "stage"
        Stage(stage, program)
        configuration = pathlib.Path(scratch) / "mkdocs.yml"
        configuration.write_text(f"INHERIT: {CONFIGURATION}\ndocs_dir: {stage}\nhooks: [{CONFIGURATION.parent / 'hooks.py'}]\n", encoding="utf-8")
        made = subprocess.run(["mkdocs", "build", "--quiet", "--clean", "--config-file", configuration, "--site-dir", out], check=False,
                              env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    return ["mkdocs could not build the site (its message is above)"] if made.returncode else list(site_problems(out))


def main(arguments):
    """Builds or checks; the exit code."""
    if len(arguments) not in (1, 2) or (arguments[0].startswith("-") and arguments != ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    problems = list(navigation_problems())
    if not problems and arguments != ["--check"]:
        out, program = pathlib.Path(arguments[0]).resolve(), pathlib.Path(arguments[1] if len(arguments) > 1 else ROOT / "build/release/windtunnel").resolve()
        if shutil.which("mkdocs") is None:
            print("error: mkdocs is not installed (apt-get install --no-install-recommends mkdocs mkdocs-material)", file=sys.stderr)
            return 3
        if not os.access(program, os.X_OK):
            print(f"error: there is no {program}: build it (./run.sh), or name the program behind OUT", file=sys.stderr)
            return 3
        problems = build(out, program)
        if not problems:
            print(f"{sum(1 for _ in out.rglob('*.html'))} pages in {out}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
