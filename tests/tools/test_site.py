"""The documentation becomes a site in which every link leads somewhere."""

import pytest

from tests.architecture.sources import ROOT
from tests.tools.links import Reader, dead_links
from tools.site import Site, anchor

README = """\
# Words & *marks*

[to a heading](docs/a.md#two-words) ![picture](docs/p.svg) [code](src/a.py) [out](https://example.com/x.md)

```python
x = "<b>"
```

| a | b |
|---|---|
| `1` | 2 |

one<br>**two** `<br>` <i>
"""


@pytest.fixture
def small(tmp_path):
    root = tmp_path / "project"
    for name, text in {
        "README.md": README,
        "README.zh.md": "# 中文\n\n[同一页](#中文)\n",
        "docs/a.md": "# A\n\n## Two words\n\n## Two words\n\n[back](../README.md)\n",
        "docs/p.svg": "<svg/>",
        "src/a.py": "a = 1\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def built(root, out):
    Site(root).build(out)
    return out


def test_the_documentation_has_no_dead_link(tmp_path):
    out = built(ROOT, tmp_path / "site")
    assert list(dead_links(out)) == []
    shown = (out / "docs" / "figure-1.html").read_text(encoding="utf-8")
    assert 'href="../regard/model/encoder.py.html"' in shown


def test_a_folder_of_somebody_else_is_never_replaced(small, tmp_path):
    out = tmp_path / "site"
    built(small, built(small, out))  # its own is, and may be again
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("you")
    with pytest.raises(SystemExit, match="no site of ours"):
        built(small, tmp_path / "letters")
    assert (tmp_path / "letters" / "dear.txt").read_text() == "you"


def test_a_small_site(small, tmp_path):
    out = built(small, tmp_path / "site")
    assert list(dead_links(out)) == []
    first = (out / "index.html").read_text(encoding="utf-8")
    assert "<title>Words &amp; marks</title>" in first
    assert "&lt;b&gt;" in first
    assert "<td><code>1</code></td>" in first
    assert "<p>one<br />\n<strong>two</strong> <code>&lt;br&gt;</code> &lt;i&gt;</p>" in first
    assert 'href="https://example.com/x.md"' in first
    assert (out / "docs" / "p.svg").read_text() == "<svg/>"
    assert Reader(out / "docs" / "a.html").names == {"a", "two-words", "two-words-1"}
    assert "L-1" in Reader(out / "src" / "a.py.html").names


def test_the_other_language_is_a_link_away(small, tmp_path):
    out = built(small, tmp_path / "site")
    assert 'href="index.zh.html" lang="zh-Hans"' in (out / "index.html").read_text(encoding="utf-8")
    chinese = (out / "index.zh.html").read_text(encoding="utf-8")
    assert '<html lang="zh-Hans">' in chinese
    assert 'href="index.html" lang="en"' in chinese
    assert 'href="index.zh.html" aria-current="page">中文</a>' in chinese, "the contents stay in the language"
    assert 'href="docs/a.html"' in chinese, "what is there in English only is named all the same"


@pytest.mark.parametrize(
    ("link", "complaint"),
    [
        ("docs/b.md", "no file docs/b.md"),
        ("docs/a.md#three-words", "no heading docs/a.html#three-words"),
        ("#nowhere", "no heading #nowhere"),
        ("docs/a.html", None),
    ],
)
def test_a_dead_link_is_found(small, tmp_path, link, complaint):
    (small / "README.md").write_text(f"[x]({link})\n", encoding="utf-8")
    found = list(dead_links(built(small, tmp_path / "site")))
    assert [each for each in found if "index.html" in each] == (
        [f"index.html: {complaint}"] if complaint else []
    )


def test_a_new_page_is_in_the_contents(small, tmp_path):
    assert 'href="docs/a.html"' in (built(small, tmp_path / "site") / "index.html").read_text(
        encoding="utf-8"
    )


def test_headings_have_the_names_that_github_gives_them():
    assert anchor("3.2.1 Scaled dot-product: `softmax`, “why”?") == "321-scaled-dot-product-softmax-why"
    assert anchor("注意力 与 d_k") == "注意力-与-d_k"
