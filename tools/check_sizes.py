#!/usr/bin/env python3
"""Functions have at most 60 lines and classes at most 300, from the line they begin in to their closing brace.

  tools/check_sizes.py [FILE...]     all sources of sim, tools and bindings without files; exit code 1 when one is larger

Sources are formatted by clang-format: what a brace opens is told by the text between it and the end of the statement before.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_LINES = {"function": 60, "class": 300}
# Comments, literals and preprocessor lines, in which braces open nothing.
SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*',
                     re.S | re.M)
SCOPE = re.compile(r'\bnamespace\b|\bextern\s*$')
ACCESS = re.compile(r'\b(public|private|protected):$')
# A default, an initializer of a variable, or one of a member in a constructor's list.
VALUE = re.compile(r'(^|[^=!<>])=\s*$|\)\s*(noexcept\s*)?:(?!:).*[\w>]$|^(inline |static |constexpr |const )*enum\b', re.S)
CLASS = re.compile(r'^(?:template\s*<.*>\s*)?(?:class|struct|union)\b[^()]*$', re.S)


def kind_of(opening, inside):
    """What a brace opens, by the text before it and what it stands in."""
    if inside not in ("scope", "class"):
        return "block"
    if opening.count("(") > opening.count(")") or VALUE.search(opening):
        return "value"
    if SCOPE.search(opening):
        return "scope"
    if CLASS.search(opening):
        return "class"
    return "function" if "(" in opening else "value"


def sizes_in(text):
    """(kind, first line, lines, opening text) of each function and class."""
    text = SKIPPED.sub(lambda found: re.sub(r'[^\n]', ' ', found[0]), text)
    braces, start = [("scope", 0, "")], 0
    for at, letter in enumerate(text):
        if letter == "{":
            opening = text[start:at].strip()
            begin = at - len(text[start:at].lstrip())
            braces.append((kind_of(opening, braces[-1][0]), begin, opening))
        elif letter == "}" and len(braces) > 1:
            kind, begin, opening = braces.pop()
            if kind == "value":
                continue  # the statement goes on
            if kind in MOST_LINES:
                yield kind, text.count("\n", 0, begin) + 1, text.count("\n", begin, at) + 1, opening
        if braces[-1][0] != "value" and (letter in "{};" or ACCESS.search(text[max(0, at - 10):at + 1])):
            start = at + 1


def main():
    files = [pathlib.Path(name) for name in sys.argv[1:]] or sorted(
        file for folder in ("sim", "tools", "bindings") for kind in ("*.cpp", "*.hpp") for file in (ROOT / folder).rglob(kind))
    too_large = 0
    for file in files:
        for kind, line, lines, opening in sizes_in(file.read_text()):
            if lines > MOST_LINES[kind]:
                too_large += 1
                print(f"{file}:{line}: a {kind} of {lines} lines, more than {MOST_LINES[kind]}: {' '.join(opening.split())}")
    if too_large:
        sys.exit(1)
    print(f"{len(files)} files: functions have at most {MOST_LINES['function']} lines, classes at most {MOST_LINES['class']}")


if __name__ == "__main__":
    main()
