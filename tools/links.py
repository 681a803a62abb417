#!/usr/bin/env python3
"""Checks that every link of the documentation leads somewhere: files, images and #headings, by the rules of GitHub.

  tools/links.py [FILE...]    exit code 1 when a link is dead; without files: README.md, CONTRIBUTING.md, CHANGELOG.md and docs/**/*.md, and
                              what sources cite as "docs/page.md" or "docs/page.md, section 3"

Addresses of other hosts are not asked. tools/docs_site.py uses the same rules to build the site.
"""
import html
import pathlib
import re
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCE = re.compile(r" *(?:> ?|[-*] )*(`{3,}|~{3,})")
HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
INLINE = re.compile(r"\]\(\s*<?([^()\s<>]*(?:\([^()\s]*\)[^()\s<>]*)*)>?(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)")
DEFINITION = re.compile(r" {0,3}\[[^\]^][^\]]*\]:\s*<?([^\s>]+)")
ATTRIBUTE = re.compile(r"<[a-z][^>]*?\b(?:href|src)=[\"']([^\"']*)[\"']", re.IGNORECASE)
NAMED = re.compile(r"<[a-z][^>]*?\b(?:id|name)=[\"']([^\"']*)[\"']", re.IGNORECASE)
CITATION = re.compile(r"\b(docs/[\w-]+(?:/[\w-]+)?\.md)(?:,? section (\d+))?")


def pages():
    """The pages that are checked by default."""
    return [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted((ROOT / "docs").rglob("*.md"))


def prose(text):
    """(number, line) of each line that is no code block and no comment, counted from 1."""
    text = re.sub(r"<!--.*?-->", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.DOTALL)
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        mark = FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line[mark.end():].strip():
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            yield number, line


def without_code(line):
    """The line with its code spans emptied: what is in them is no link."""
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "``", line)


def slug(heading):
    """GitHub's name of a heading: of its text, in lower case, letters, digits, '_' and '-' stay and a space becomes '-'."""
    return re.sub(r"[^\w\- ]", "", html.unescape(heading).strip().lower()).replace(" ", "-")


def heading_text(markdown):
    """What a heading shows: without marks of links, images, emphasis and code."""
    parts = re.split(r"(`+)(.+?)\1", markdown)
    for at in range(0, len(parts), 3):
        part = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", parts[at])
        parts[at] = re.sub(r"\*+|(?<!\w)_+|_+(?!\w)|<[^>]*>", "", part)
    return "".join(part for at, part in enumerate(parts) if at % 3 != 1)


def unique(name, used):
    """The name, or with the -1, -2, ... that GitHub gives to headings that read alike; adds it to those used."""
    candidate, count = name, 0
    while candidate in used:
        count += 1
        candidate = f"{name}-{count}"
    used.add(candidate)
    return candidate


def anchors(text):
    """The names that a '#name' may have in a page."""
    found = set()
    for _, line in prose(text):
        heading = HEADING.match(line)
        if heading:
            unique(slug(heading_text(heading[2])), found)
        found.update(NAMED.findall(without_code(line)))
    return found


def links(text):
    """(number of the line, target) of each link and image of a page."""
    for number, line in prose(text):
        line = without_code(line)
        for pattern in (INLINE, ATTRIBUTE):
            yield from ((number, match[1]) for match in pattern.finditer(line))
        definition = DEFINITION.match(line)
        if definition:
            yield number, definition[1]


def is_elsewhere(target):
    """Whether a link leads out of the repository."""
    return re.match(r"[a-z][a-z0-9+.-]*:|//", target, re.IGNORECASE) is not None


def destination(page, target):
    """The file or folder that a link of `page` means, and its anchor ("" for none)."""
    path, _, anchor = target.partition("#")
    return (page.parent / urllib.parse.unquote(path)).resolve() if path else page.resolve(), urllib.parse.unquote(anchor)


class Checker:
    """Says what is wrong with links of pages below `root`. Reads each page once."""

    def __init__(self, root):
        self.root = root.resolve()
        self.anchors = {}

    def problem(self, page, target):
        """Why the link is dead, or ""."""
        if is_elsewhere(target):
            return ""
        if not target:
            return "the link is empty"
        file, anchor = destination(page, target)
        if target.startswith("/") or not file.is_relative_to(self.root):
            return "it leads out of the repository"
        if not file.exists():
            return f"there is no {file.relative_to(self.root)}"
        if not anchor:
            return ""
        if file.suffix != ".md":
            return "only headings of pages can be linked to"
        if file not in self.anchors:
            self.anchors[file] = anchors(file.read_text(encoding="utf-8"))
        if anchor in self.anchors[file]:
            return ""
        return f"{file.relative_to(self.root)} has no heading for #{anchor}"

    def check(self, page):
        """'page:line: link (why it is dead)' of each dead link."""
        for number, target in links(page.read_text(encoding="utf-8")):
            problem = self.problem(page, target)
            if problem:
                yield f"{page.resolve().relative_to(self.root)}:{number}: {target} ({problem})"


def dead_citations(root):
    """'file:line: citation' of each page, or numbered section of one, that sources below `root` cite and that is not there."""
    sources = sorted(file for folder in ("sim", "bindings", "platforms", "tools") for file in (root / folder).rglob("*")
                     if file.suffix in (".cpp", ".hpp", ".h", ".txt", ".cmake", ".sh", ".py", ".json") and not file.match("tools/links*")
                     and not file.match("tools/docs_site*"))
    sections = {}
    for file in sources:
        text = file.read_text(encoding="utf-8", errors="replace")
        for match in CITATION.finditer(text):
            page, section = match.groups()
            if page not in sections:
                sections[page] = set(re.findall(r"^#+ (\d+)\.", (root / page).read_text(encoding="utf-8"), re.MULTILINE)) if (root / page).exists() else None
            if sections[page] is None or (section and section not in sections[page]):
                yield f"{file.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"


def main(arguments):
    """Prints dead links; the exit code."""
    checker = Checker(ROOT)
    files = [pathlib.Path(name) for name in arguments] or pages()
    dead = [line for page in files for line in checker.check(page)]
    if not arguments:
        dead += dead_citations(ROOT)
    for line in dead:
        print(line)
    total = sum(1 for page in files for _ in links(page.read_text(encoding="utf-8")))
    print(f"{len(dead)} dead links; {total} in {len(files)} pages were followed")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
