#!/usr/bin/env python3
"""Writes docs/scenario-reference.md from docs/scenario.schema.json.

  tools/scenario_reference.py [PROGRAM]           writes the page; with the program, first the schema of the keys in its table
  tools/scenario_reference.py --check [PROGRAM]   exit code 1 when the page is not what the schema says, or a key is not described; with
                                                  the program, when the schema is not what `windtunnel list keys` says

The keys of `training`, `parallel` and `search` are described in sim/scenario/key_table.cpp, all others in the schema.

Besides what JSON Schema has, a key of the schema may say "x-unit" and, where its default is no fixed value, "x-default". Kinds of amounts, and keys
with a range of their own, say "x-minimum" and "x-maximum". A definition whose words are listed on another page says "x-kind" in place of them.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "docs/scenario.schema.json"
PAGE = ROOT / "docs/scenario-reference.md"

# Amounts: what a key is.
AMOUNTS = {"bytes": "size", "seconds": "time", "data_rate": "data rate", "flop_rate": "rate of operations"}
ENDS = ("x-minimum", "x-maximum")
NEEDS_EXAMPLE = ("text", "list of object", "list of list", "list of text", "path", "anything")
MOST_KEYS_INSIDE = 4  # of an object whose keys stand in the table of the object around it
TOLD_AT_HEAD = ("/source", "/$schema", "/description")
LABELS = ("$schema", "name", "description", "source")
OVERLAYS = ("elsewhere", "releases")  # lists of objects whose keys are laid over those next to the list
HEAD = """<!-- Written by tools/scenario_reference.py from scenario.schema.json, not by hand. -->
# Every key of a scenario

Keys are JSON pointers, as in `--set POINTER=VALUE`; `N` is a position in a list, counted from 0. [scenario.md](scenario.md) explains how files are combined.
Ranges are of whole numbers unless they say *number*; a boolean is `false` unless the table says otherwise. An amount is text with its unit; unless the table gives a range,
{ranges}.
*Required* holds for the merged file: a file named in `extends` may provide the key. Keys without a default may be left out. `null` is the same as no value. Any object may have a `description`
and, for editors, a `$schema`. Each number of a machine or of software needs a [`source`](platforms.md#rules) in its object.
"""


class Reference:
    def __init__(self, schema):
        self.schema = schema
        self.lines = [HEAD.format(ranges=self.ranges())]
        self.undescribed = []
        self.rows = []  # of the table that is being written
        self.defaults = {}  # by pointer, where the schema gives the value

    def resolved(self, node):
        """The node that a $ref, or the one part of an allOf, stands for; what stands next to it is kept."""
        while isinstance(node, dict) and ("$ref" in node or len(node.get("allOf", [])) == 1):
            if "$ref" in node:
                target = self.schema
                for part in node["$ref"][2:].split("/"):
                    target = target[part]
                node = target
            else:
                rest = {key: value for key, value in node.items() if key != "allOf"}
                node = {**self.resolved(node["allOf"][0]), "$of": node["allOf"][0].get("$ref", ""), **rest}
        return node

    def object_of(self, node):
        """The object schema among what the value may be, and how deep in lists it stands; nothing where there is none."""
        node = self.resolved(node)
        if "properties" in node:
            return node, 0
        if isinstance(node.get("items"), dict):
            inner = self.object_of(node["items"])
            return (inner[0], inner[1] + 1) if inner else None
        for choice in node.get("anyOf", []):
            if (found := self.object_of(choice)) is not None:
                return found
        return None

    def completions(self, node):
        """What a complete file has besides, as in the `else` of the schema, spread over $ref and allOf."""
        node = self.resolved(node)
        parts = node.get("allOf", []) + ([node["else"]] if "extends" in node.get("if", {}).get("required", []) else [])
        return [node] + [part for each in parts for part in self.completions(each)]

    def inner_completions(self, completions, key):
        found = []
        for node in completions:
            if key in node.get("properties", {}):
                found += self.completions(node["properties"][key])
        return found

    def amount(self, kind, node):
        """"time, 1 s to 1 h"; without the range where it is that of the kind, which the page's head says."""
        usual = self.schema["definitions"][kind]
        own = {**usual, **node}
        if all(own[end] == usual[end] for end in ENDS):
            return AMOUNTS[kind]
        return f"{AMOUNTS[kind]}, {own[ENDS[0]]} to {own[ENDS[1]]}"

    def ranges(self):
        """"a size is between `1 B` and `1 PB`" of each kind of amount."""
        definitions = self.schema["definitions"]
        return ", ".join(f"a {name} is `{definitions[kind][ENDS[0]]}` to `{definitions[kind][ENDS[1]]}`" for kind, name in AMOUNTS.items())

    def kind(self, node):
        """Type and allowed values in words."""
        if (kind := node.get("$ref", node.get("$of", "")).rsplit("/", 1)[-1]) in AMOUNTS:
            return self.amount(kind, node)
        if "x-kind" in self.resolved(node):
            return self.resolved(node)["x-kind"]
        if "$ref" in node:
            node = self.resolved(node)
            if "anyOf" in node and any("additionalProperties" in choice for choice in node["anyOf"]):
                return "text, or texts by key"
        if "const" in node:
            return f"`{json.dumps(node['const'])}`"
        if "enum" in node:
            return ", ".join(f"`{json.dumps(value) if isinstance(value, bool) else value}`" for value in node["enum"] if value is not None)
        if "anyOf" in node:
            words = []
            ends = {key: node[key] for key in ENDS if key in node}
            for choice in node["anyOf"]:
                word = self.kind({**choice, **ends})
                if word and word not in words:
                    words.append(word)
            return " or ".join(words)
        types = node.get("type", "object" if "properties" in node else "anything")
        types = [each for each in ([types] if isinstance(types, str) else types) if each != "null"]
        return self.kind_of_type(types[0], node) if types else ""

    def kind_of_type(self, name, node):
        if name == "integer":
            return limits(node).removeprefix(", ") or name
        if name == "number":
            return name + limits(node)
        if name == "boolean":
            return "boolean"
        if name == "string":
            return "path" if node.get("pattern") == "/|\\.json$" else "text"
        if name == "array":
            return "list of " + (self.kind(node["items"]) or "values")
        return name

    def row(self, pointers, every_pointer, node, required):
        raw, node = node, self.resolved(node)
        if not node.get("description") or "examples" not in node:
            self.undescribed.append(pointers[0])
        if "default" in node:
            self.defaults.update((pointer, node["default"]) for pointer in every_pointer)
            default = f"`{json.dumps(node['default'], ensure_ascii=False)}`"
        else:
            default = "required" if required else node.get("x-default", "none")
            if not required and "x-default" not in node:
                self.undescribed.append(pointers[0] + " (default)")
        if pointers[0].count("/") > 1 and pointers[0].endswith(TOLD_AT_HEAD):
            return
        kind = self.kind(raw if "$ref" in raw and raw["$ref"].rsplit("/", 1)[1] in AMOUNTS else node)
        meaning = node.get("description", "")
        first = node.get("examples", [""])[0]
        folder = re.search("a name from ([a-z/]+)/", meaning)
        if folder and isinstance(first, str) and not (ROOT / folder[1] / f"{first}.json").exists():
            self.undescribed.append(f"{pointers[0]} (example: no {first}.json in {folder[1]}/)")
        example = json.dumps(first, ensure_ascii=False)
        if kind.startswith(NEEDS_EXAMPLE) and "default" not in node and "…" not in example \
                and not (kind == "list of object" and self.object_of(node)):
            meaning += f" (`{example}`)"
        unit = f" {node['x-unit']}" if "x-unit" in node else ""
        if default in ("required", "needed"):
            default = ", **required**"
        else:
            default = "" if default in ("none", "nothing", "see its keys") or (kind, default) == ("boolean", "`false`") else f" ({default})"
        cells = [kind + unit + default, meaning]
        alike = next((each for each in self.rows if each[1:] == cells), None)
        if alike:
            alike[0] += pointers
        else:
            self.rows.append([list(pointers), *cells])

    def write_rows(self):
        """Rows alike in all but the key are one."""
        for pointers, *cells in self.rows:
            cells = [", ".join(f"`{pointer}`" for pointer in pointers), *cells]
            self.lines.append(" | ".join(cell.replace("|", "\\|") for cell in cells))
        self.rows = []

    def table(self, title, about, rows):
        self.lines.append(f"\n## {title}\n")
        if about:
            self.lines.append(about[0].upper() + about[1:] + ".\n")
        for row in rows:
            self.row(*row)
        if self.rows:
            self.lines.append("key | values (default) | meaning\n---|---|---")
        self.write_rows()

    def add(self, pointer, title, node, completions, siblings=()):
        """The table of an object, then those of the objects in it. `siblings`: the keys of the object that it stands in."""
        told = self.told_elsewhere(pointer, node, siblings)
        inner = self.inner_objects(pointer, node, completions)
        alike = [each for each in inner if any(self.shares_keys(each[2], other[2]) for other in inner if other is not each)]
        small = {key: each for each in inner if each not in alike and self.is_small(each[2]) for key in [each[1]]}
        rows = []
        for key, row in self.rows_of(pointer, node, completions):
            rows += [row] if key not in told else []
            rows += [inside for _, inside in self.rows_of(small[key][0], *small[key][2:])] if key in small else []
        self.table(title, "", rows)
        for words in dict.fromkeys(told.values()):
            names = [f"`{key}`" for key, of in told.items() if of == words and key not in LABELS]
            self.lines.append(f"{self.blank_line()}{words}: {', '.join(names)}.")
        if alike:
            self.add_alike(pointer, alike)
        for each in inner:
            if each not in alike and each[1] not in small:
                self.add(each[0], f"`{each[0]}`", each[2], each[3], node["properties"])

    @staticmethod
    def rows_of(pointer, node, completions):
        """The rows of an object's keys, as `row` takes them, each with its key."""
        required = {key for each in [node] + completions for key in each.get("required", [])}
        return [(key, ([f"{pointer}/{key}"], [f"{pointer}/{key}"], value, key in required)) for key, value in node["properties"].items()]

    def inner_objects(self, pointer, node, completions):
        """The objects among the values of an object: where, under which key, the object, and what a complete file has besides."""
        inner = []
        for key, value in node["properties"].items():
            if (found := self.object_of(value)) is None:
                continue
            below = self.inner_completions(completions, key)
            for _ in range(found[1]):
                below = [part for each in below if isinstance(each.get("items"), dict)
                         for part in self.completions(each["items"])]
            inner.append((f"{pointer}/{key}" + "/N" * found[1], key, found[0], below))
        return inner

    def is_small(self, node):
        """Whether the table of the object around it has room for its keys."""
        keys = [key for key in node["properties"] if key not in LABELS]
        return len(keys) <= MOST_KEYS_INSIDE and all(self.object_of(value) is None for value in node["properties"].values()) \
            and not self.told_elsewhere("", node, ())

    def blank_line(self):
        """A line break, unless the last line ends in one."""
        return "" if self.lines[-1].endswith("\n") else "\n"

    @staticmethod
    def told_elsewhere(pointer, node, siblings):
        """Keys that another table describes, and what to say of them: those laid over the same keys next to the list, and whole blocks of
        references to keys of the same names."""
        if pointer.removesuffix("/N").rsplit("/", 1)[-1] in OVERLAYS:
            return {key: "As outside the list" for key in node["properties"] if key in siblings}
        told = {}
        for key, value in node["properties"].items():
            block, _, name = value.get("$ref", "").removeprefix("#/definitions/").partition("/properties/")
            if name == key and key not in LABELS:
                told[key] = f"As in `/{block}`"
        return told

    @staticmethod
    def shares_keys(one, other):
        return any(key not in LABELS and other["properties"].get(key) == value for key, value in one["properties"].items())

    def add_alike(self, pointer, objects):
        """One table for objects that have keys in common."""
        rows = {}
        for where, _, node, completions in objects:
            required = {key for each in [node] + completions for key in each.get("required", [])}
            for key, value in node["properties"].items():
                rows.setdefault((key, json.dumps(value)), ([], [], value, key in required))[1].append(f"{where}/{key}")
        for (key, _), (pointers, every_pointer, _, _) in rows.items():
            pointers += [f"{pointer}/X/{key}"] if len(every_pointer) == len(objects) else every_pointer
        names = [f"`{key}`" for _, key, _, _ in objects]
        self.table(f"`{pointer}/X`", f"X is {', '.join(names[:-1])} or {names[-1]}", rows.values())


def limits(node):
    def text(number):
        return f"{number:,}" if isinstance(number, int) or number == int(number) else f"{number:g}"
    least, most = node.get("minimum"), node.get("maximum")
    if least is None:
        return ""
    low = "above 0" if 0 < least < 1e-3 else text(least)
    if most is None:
        return f", {low} or more"
    return f", {low}{'–' if least >= 0 and low[0].isdigit() else ' to '}{text(most).removesuffix('.0')}"


def without_words(node, definitions):
    """The schema of a key; words that stand next to a reference move to where it leads."""
    if isinstance(node, list):
        return [without_words(each, definitions) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node and "enum" in node:
        definitions[node["$ref"].rsplit("/", 1)[1]]["enum"] = node["enum"]
    return {key: without_words(value, definitions) for key, value in node.items() if key != "enum" or "$ref" not in node}


def with_keys(schema, program):
    """The schema with the keys of the program's table; the search block has keys besides."""
    definitions, blocks = schema["definitions"], {}
    listed = subprocess.run([program, "list", "keys", "--json"], check=True, capture_output=True, text=True)
    for key in json.loads(listed.stdout)["keys"]:
        _, block, name = key.pop("name").split("/")
        blocks.setdefault(block, {})[name] = without_words(key, definitions)
    for name in ("memory_margin", "surely_fits", "placement", "objective"):
        blocks["search"][name] = definitions["search"]["properties"][name]
    for block, keys in blocks.items():
        definitions[block]["properties"] = keys
    return schema


def schema_text(value, indent=0, column=0):
    """As JSON, what fits on a line on one."""
    widest = 120
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or column + len(line) <= widest:
        return line
    blanks = " " * (indent + 2)
    if isinstance(value, list):
        return "[\n" + ",\n".join(blanks + schema_text(each, indent + 2, indent + 2) for each in value) + "\n" + " " * indent + "]"
    names = [blanks + json.dumps(key) + ": " for key in value]
    return "{\n" + ",\n".join(name + schema_text(each, indent + 2, len(name)) for name, each in zip(names, value.values())) + "\n" + " " * indent + "}"


def read_reference(schema=None):
    schema = schema or json.loads(SCHEMA.read_text())
    reference = Reference(schema)
    reference.add("", "The scenario", schema, reference.completions(schema["else"]))
    return reference


def main():
    arguments = sys.argv[1:]
    check = arguments[:1] == ["--check"]
    programs = arguments[1:] if check else arguments
    if len(programs) > 1 or any(each.startswith("-") for each in programs):
        sys.exit(__doc__)
    schema = json.loads(SCHEMA.read_text())
    for program in programs:
        schema = with_keys(schema, program)
    reference = read_reference(schema)
    if reference.undescribed:
        sys.exit("no description, default or example: " + ", ".join(reference.undescribed))
    pages = {SCHEMA: schema_text(schema) + "\n", PAGE: "\n".join(reference.lines) + "\n"}
    for path, text in pages.items():
        if not check:
            path.write_text(text)
        elif text != path.read_text():
            sys.exit(f"docs/{path.name} is not what the table of keys and the schema say (run tools/scenario_reference.py with the program)")
    if check:
        print("docs/scenario.schema.json and docs/scenario-reference.md are what keys are described as")


if __name__ == "__main__":
    main()
