"""Makes mkdocs read the pages as GitHub does: its names of headings, and lists and tables that follow a paragraph without an empty line."""
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import links  # noqa: E402  (of tools/)

LIST = re.compile(r" *(?:[-*+]|\d+[.)]) ")
RULE = re.compile(r" *\|?[ :|-]*-[ :|-]*\|[ :|-]*$")  # the line below a table's head
POINTER = re.compile(r"(?<=<td><code>)/[^<]*")
used_names = set()  # by headings of the page that is being rendered


def on_config(config):
    """Names of headings are GitHub's."""
    config["mdx_configs"]["toc"] = {"permalink": True, "slugify": lambda text, _: links.unique(links.slug(text), used_names)}
    return config


def on_post_page(output, config, page, **_):
    """The script that makes search work without a server stands before those of the theme; pointers in tables may break after a slash or _."""
    output = POINTER.sub(lambda found: re.sub("([/_])(?=[^<])", r"\1<wbr>", found[0]), output)
    depth = page.url.count("/")
    script = f'<script src="{"../" * depth}search/offline_search.js"></script>'
    at = output.rindex("<script src=", 0, output.rindex("assets/javascripts/bundle"))
    return output[:at] + script + output[at:]


def on_post_build(config):
    """That script, and the search index as one."""
    search = pathlib.Path(config["site_dir"]) / "search"
    shutil.copyfile(pathlib.Path(__file__).with_name("offline_search.js"), search / "offline_search.js")
    index = (search / "search_index.json").read_text(encoding="utf-8")
    (search / "search_index.js").write_text(f"var __search = {{index: Promise.resolve({index})}};\n", encoding="utf-8")


def on_page_markdown(markdown, **_):
    """An empty line before each list and table, and nested items indented by four."""
    used_names.clear()
    lines = markdown.split("\n")
    prose = {number for number, _ in links.prose(markdown)}
    written, in_list, in_item, previous = [], False, False, ""  # in_item: the paragraph began with a list's item
    for number, line in enumerate(lines, 1):
        if number in prose:
            starts_item = LIST.match(line) is not None and (in_list or not line.startswith("    "))
            starts_table = number < len(lines) and "|" in line and "|" not in previous and RULE.match(lines[number]) is not None
            if previous.strip() and ((starts_item and not in_item) or starts_table):
                written.append("")
            if starts_item:
                in_list = in_item = True
            elif not previous.strip():
                in_item = False
                in_list = in_list and (line.startswith(" ") or not line.strip())
            indent = len(line) - len(line.lstrip(" "))
            if in_list and indent in (2, 3):
                line = " " * (4 - indent) + line
        else:
            in_item = False
        written.append(line)
        previous = line
    return "\n".join(written)
