"""Markdown: what is translated in it, that all else stays, and that the markup reads as before."""

import gc
import time
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from regard.documents import markdown
from regard.documents.inline import fitted, marked_line
from regard.text.marked import InlineTag, Marked
from tests.architecture.sources import ROOT

TEXT = """---
title: not translated
---

# Head *line* {#anchor}

Foo **bold** and `code` with $a_1*b*c$ in a [link](u "t") and ![Dog picture](d.png)
goes on here{SPACES}
after a break\\
third &amp; \\*four\\*.

> quote **b**
> more <kbd>Ctrl</kbd> press[^1]
lazy

- [x] done item
  continued

  para
1. one
   - two

| Name | b \\| c |
|---|:--|
| `x` | [label](u "t") text |

```py
code
```
<div>
html
</div>

[ref]: http://x 'T'
[^1]: Footnote *text*.

这是第一行，
这是第二行。

Setext
======
""".replace("{SPACES}", "  ")


def in_capitals(source: str) -> str:
    document = markdown.read(source.encode())
    return document.written([Marked(each.text.upper(), each.tags) for each in document.segments]).decode()


def shape(source: str) -> list[str]:
    """The types of the tokens, without their texts."""
    tokens = MarkdownIt("commonmark").enable("table").parse(source)
    inner = [[child.type for child in token.children or () if child.type != "softbreak"] for token in tokens]
    return [
        f"{token.type} {[kind for kind in kinds if kind != 'text']}"
        for token, kinds in zip(tokens, inner, strict=True)
    ]


@pytest.mark.parametrize(
    "source", [TEXT, TEXT.replace("\n", "\r\n"), f"\ufeff{TEXT}", "", "\n", "a\rb", "| a |"]
)
def test_its_own_segments_are_the_source(source):
    document = markdown.read(source.encode())
    assert document.written(document.segments) == source.encode()


def test_the_pages_of_this_project_keep_bytes_and_structure():
    for page in sorted(Path(ROOT, "docs").glob("*.md"))[:7]:
        source = page.read_bytes()
        document = markdown.read(source)
        assert document.written(document.segments) == source
        assert not document.notes
        assert shape(in_capitals(source.decode())) == shape(source.decode()), page


def test_what_is_translated():
    assert [each.text for each in markdown.read(TEXT.encode()).segments] == [
        "Head line",
        "Dog picture",
        "Foo bold and  with  in a link and  goes on here",
        "after a break",
        "third & *four*.",
        "quote b more  press lazy",
        "done item continued",
        "para",
        "one",
        "two",
        "Name",
        "b | c",
        "label text",
        "Footnote text.",
        "这是第一行，这是第二行。",
        "Setext",
    ]


def test_translations_are_written_in_their_places():
    written = in_capitals(TEXT)
    for line in (
        "# HEAD *LINE* {#anchor}",
        'FOO **BOLD** AND `code` WITH $a_1*b*c$ IN A [LINK](u "t") AND ![DOG PICTURE](d.png) GOES ON HERE  ',
        "AFTER A BREAK\\",
        "THIRD & \\*FOUR\\*.",
        "> QUOTE **B** MORE <kbd>Ctrl</kbd> PRESS[^1] LAZY",
        "- [x] DONE ITEM CONTINUED",
        "   - TWO",
        "| NAME | B \\| C |",
        '| `x` | [LABEL](u "t") TEXT |',
        "[ref]: http://x 'T'",
        "[^1]: FOOTNOTE *TEXT*.",
    ):
        assert line in written.split("\n")


def test_a_translation_begins_no_other_block():
    document = markdown.read(b"One.\n\n# Two\n")
    assert document.written([Marked("1. Januar"), Marked("1. Mai")]) == b"1\\. Januar\n\n# 1. Mai\n"
    assert markdown.read(b"One.\n").written([Marked("- x")]) == b"\\- x\n"


def test_emphasis_is_written_so_that_it_is_emphasis():
    bold = (InlineTag(0, "**", opens="s"), InlineTag(3, "**", closes="s"))
    assert fitted(Marked("注意：请看", bold)).written() == "**注意**：请看"
    twice = (*bold, InlineTag(3, "*", opens="e"), InlineTag(5, "*", closes="e"))
    assert fitted(Marked("欧委会周一说", twice)).written() == "**欧委会** *周一*说"
    under = (InlineTag(1, "_", opens="e"), InlineTag(3, "_", closes="e"))
    assert fitted(Marked("很重要吗", under)).written() == "很*重要*吗"


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("read the **manual** and [the *FAQ*](a_b_c.html)", ["**", "**", "[", "*", "*", "](a_b_c.html)"]),
        ("**注意：**请看", ["**", "**"]),
        ("<p>Hi <b>you</b></p>", ["<p>", "<b>", "</b>", "</p>"]),
        ("2*3*4, a**b**c, snake_case_name, a<b and c>d, `**x**`, <foo>x</foo>, <b>x", []),
    ],
)
def test_markup_in_a_line_of_plain_text(line, tags):
    found = marked_line(line)
    assert [tag.raw for tag in found.tags] == tags
    assert found.written() == line


@pytest.mark.parametrize(
    "piece", ["[", "*a ", "**a", "<b>", "[a](", "`", "_", "~~a", "<code></code>", "> ", "- x\n"]
)
def test_a_hostile_text_takes_time_in_proportion_to_its_size(piece):
    def seconds(n):
        gc.disable()  # it looks at everything that earlier tests have left
        started = time.thread_time()
        document = markdown.read((piece * n)[:n].encode())
        document.written(document.segments)
        needed = time.thread_time() - started
        gc.enable()
        return needed

    # Quadratic would be 64 times as long.
    assert seconds(16_000) < 24 * seconds(2_000) + 0.2
