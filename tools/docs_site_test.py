#!/usr/bin/env python3
"""Proves that docs_site.py notices pages without a place in the navigation, and dead links of a built site. Needs no mkdocs."""
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent / "docs_site"))
import docs_site  # noqa: E402
import hooks  # noqa: E402
import links  # noqa: E402


class DocsSiteTest(unittest.TestCase):
    """A repository of three pages, and what is built of it."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name).resolve()
        (self.root / "docs").mkdir()
        for page in ("README.md", "docs/one.md", "docs/two.md"):
            (self.root / page).write_text("# A page\n")
        for module, name, value in ((docs_site, "ROOT", self.root), (docs_site, "CONFIGURATION", self.root / "mkdocs.yml"),
                                    (links, "pages", lambda: [self.root / "README.md", *sorted((self.root / "docs").glob("*.md"))])):
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.navigate("Home: README.md", "docs/one.md", "The second: docs/two.md", "docs/commands.md")

    def navigate(self, *entries):
        """Writes a configuration with these pages in a group."""
        (self.root / "mkdocs.yml").write_text("site_name: x\nnav:\n  - Group:\n" + "".join(f"      - {entry}\n" for entry in entries) +
                                              "theme:\n  - not: a/page.md\n")

    def test_navigation(self):
        self.assertEqual(list(docs_site.navigation_problems()), [])
        self.navigate("README.md", "Gone: docs/gone.md", "docs/one.md", "docs/one.md", "docs/commands.md")
        self.assertEqual([problem.split(":")[0].split(" in 'nav'")[0] for problem in docs_site.navigation_problems()],
                         ["docs/gone.md is not there", "docs/one.md is 2 times", "docs/two.md is in no group"])

    def problems(self, html, searched=("", "docs/one.html#part", "docs/two.html", "docs/commands.html")):
        """What is wrong with a site whose page docs/one.html has this body."""
        site = self.root / "site"
        for page in ("index.html", "docs/one.html", "docs/two.html", "docs/commands.html"):
            (site / page).parent.mkdir(parents=True, exist_ok=True)
            (site / page).write_text("<h1 id='top'>A page</h1>")
        (site / "docs/one.html").write_text(f"<h1 id='top'>A page</h1>{html}")
        (site / "search").mkdir(exist_ok=True)
        (site / "search/search_index.json").write_text(json.dumps({"docs": [{"location": location} for location in searched]}))
        return list(docs_site.site_problems(site))

    def test_search_without_a_server(self):
        theme = "<p></p><script>1</script><script src=\"../assets/javascripts/bundle.1.min.js\"></script>"
        page = mock.Mock(url="docs/one.html")
        self.assertEqual(hooks.on_post_page(theme, {}, page),
                         theme.replace("<script src=\"../assets", "<script src=\"../search/offline_search.js\"></script><script src=\"../assets"))
        search = self.root / "site/search"
        search.mkdir(parents=True)
        (search / "search_index.json").write_text('{"docs": []}')
        hooks.on_post_build({"site_dir": str(self.root / "site")})
        self.assertEqual((search / "search_index.js").read_text(), 'var __search = {index: Promise.resolve({"docs": []})};\n')
        self.assertTrue((search / "offline_search.js").exists())

    def test_site(self):
        self.assertEqual(self.problems("<a href='two.html#top'></a> <a href='..'></a> <a href='#top'></a> <a href='https://example.org/'></a>"), [])
        for html, problem in (("<a href='gone.html'>", "docs/one.html: gone.html is not there"),
                              ("<a href='two.html#gone'>", "docs/one.html: two.html#gone has no such heading"),
                              ("<img src='gone.png'>", "docs/one.html: gone.png is not there"),
                              ("<script src='https://example.org/x.js'></script>", "docs/one.html: https://example.org/x.js is loaded from another host")):
            self.assertEqual(self.problems(html), [problem])
        self.assertEqual(self.problems("", searched=("", "docs/one.html", "docs/commands.html")), ["docs/two.html is not found by search"])

    def test_staged_pages_bring_what_they_link_to(self):
        (self.root / "scenarios/set").mkdir(parents=True)
        (self.root / "scenarios/a.json").write_text("{}")
        (self.root / "scenarios/set/b.json").write_text("{}")
        (self.root / "docs/two.md").write_text("[a](../scenarios/a.json) [all](../scenarios/set/)\n")
        (self.root / "style.css").write_text("")
        with mock.patch.object(docs_site, "commands_page", lambda program: "# Commands\n"):
            docs_site.Stage(self.root / "stage", "program")
        stage = self.root / "stage"
        self.assertEqual((stage / "docs/two.md").read_text(), "[a](../scenarios/a.json) [all](../scenarios/set/index.md)\n")
        self.assertEqual((stage / "scenarios/a.json").read_text(), "{}")
        self.assertEqual((stage / "scenarios/set/index.md").read_text(), "# scenarios/set\n- [b.json](b.json)\n")
        self.assertTrue((stage / "scenarios/set/b.json").exists())


class HooksTest(unittest.TestCase):
    """Pages as GitHub reads them."""

    def test_lists_and_tables_follow_paragraphs(self):
        for written, read in (("Text\n- one\n- two", "Text\n\n- one\n- two"),
                              ("- one\n  - inner\n  more", "- one\n    - inner\n    more"),
                              ("- one\n\n  more\n- two", "- one\n\n    more\n\n- two"),
                              ("Text\n| a |\n|---|\n| b |", "Text\n\n| a |\n|---|\n| b |"),
                              ("Text\n\n    - code\n    - code", None), ("```\ntext\n- code\n```", None), ("one\n  two\n\nthree", None)):
            self.assertEqual(hooks.on_page_markdown(written), written if read is None else read)

    def test_names_of_headings_are_those_that_links_use(self):
        slugify = hooks.on_config({"mdx_configs": {}})["mdx_configs"]["toc"]["slugify"]
        hooks.on_page_markdown("")
        self.assertEqual([slugify("1. A & B", None), slugify("Twice", None), slugify("Twice", None)], ["1-a--b", "twice", "twice-1"])
        hooks.on_page_markdown("")
        self.assertEqual(slugify("Twice", None), "twice")

    def test_pointers_in_tables_break_after_a_slash_or_an_underscore(self):
        page, script = mock.Mock(url="docs/one.html"), "<script src=\"../assets/javascripts/bundle.1.min.js\"></script>"
        table = "<td><code>/platform/node_types</code></td><td><code>a/b</code></td><p><code>/platform/name</code></p>"
        self.assertIn("<td><code>/<wbr>platform/<wbr>node_<wbr>types</code></td><td><code>a/b</code></td><p><code>/platform/name</code></p>",
                      hooks.on_post_page(table + script, {}, page))


if __name__ == "__main__":
    unittest.main()
