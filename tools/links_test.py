#!/usr/bin/env python3
"""Proves that links.py accepts links that lead somewhere and notices those that do not."""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import links  # noqa: E402


class LinksTest(unittest.TestCase):
    """Each page is written below a folder of its own that has docs/other.md, docs/picture.svg and a file outside of it."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name) / "repository"
        (self.root / "docs").mkdir(parents=True)
        (self.root / "docs/other.md").write_text("# Other\n## 3. Rates, `NIC_rate` & more\n## Twice\n## Twice\n<a id=\"here\"></a>\n```\n# not a heading\n```\n")
        (self.root / "docs/picture.svg").write_text("<svg/>")
        (self.root.parent / "outside.md").write_text("# Outside\n")

    def dead(self, text):
        """The targets that are found dead on a page with this text."""
        page = self.root / "docs/page.md"
        page.write_text(text)
        return [line.split(": ", 1)[1].split(" (")[0] for line in links.Checker(self.root).check(page)]

    def test_links_that_lead_somewhere(self):
        for link in ("other.md", "other.md#other", "other.md#3-rates-nic_rate--more", "other.md#twice", "other.md#twice-1", "other.md#here", "../docs",
                     "../docs/", "#a-heading-here", "https://example.org/x#y", "mailto:a@example.org", "picture.svg", "other.md \"with a title\""):
            self.assertEqual(self.dead(f"# A *heading* [here](other.md)\nsee [it]({link})\n"), [], link)
        self.assertEqual(self.dead("![a picture](picture.svg) <img src=\"picture.svg\"> [![both](picture.svg)](other.md)\n[x]: other.md\n"), [])

    def test_dead_links(self):
        for link in ("absent.md", "other.md#absent", "other.md#twice-2", "other.md#not-a-heading", "other.md#3-rates-nic_rate-more", "#absent",
                     "../absent/", "../../outside.md", "/docs/other.md", "picture.svg#part"):
            self.assertEqual(self.dead(f"see [it]({link})\n"), [link])
        self.assertEqual(self.dead("![a picture](absent.svg) <img src='gone.png'> [![both](lost.svg)](none.md)\n[x]: nowhere.md\n"),
                         ["absent.svg", "lost.svg", "none.md", "gone.png", "nowhere.md"])
        self.assertEqual(self.dead("empty: []()\n"), [""])

    def test_code_and_comments_are_no_links(self):
        self.assertEqual(self.dead("`[](int x)` ``a ` [b](c)``\n```cpp\nauto f = [](int x) {};\n```\n~~~\n[a](b)\n~~~\n<!-- [a](b) -->\n"), [])
        self.assertEqual(self.dead("````\n```\n````\n[a](b)\n"), ["b"])

    def test_citations_of_sources(self):
        (self.root / "sim").mkdir()
        (self.root / "sim/a.hpp").write_text("/// docs/other.md, section 3\n/// docs/other.md section 4; docs/gone.md\n// docs/other.md\n")
        self.assertEqual(list(links.dead_citations(self.root)),
                         ["sim/a.hpp:2: docs/other.md section 4", "sim/a.hpp:2: docs/gone.md"])

    def test_lines_are_told(self):
        page = self.root / "docs/page.md"
        page.write_text("```\ncode\n```\n<!-- a\ncomment -->\n[a](b)\n")
        self.assertEqual(list(links.Checker(self.root).check(page)), ["docs/page.md:6: b (there is no docs/b)"])


if __name__ == "__main__":
    unittest.main()
