"""`regard translate FILE`: documents and folders of them, with the bundled model."""

import json

import pytest

import regard
from tests.programs import run_regard

PAGE = """<html lang="en"><body>
<p>Please read the <b>user manual</b> before you click <a href="app.html">the link</a>.</p>
<pre>stays</pre>
</body></html>
"""
NOTES = "# 用户手册\n\n请在安装之前**仔细阅读**[用户手册](m.html)。\n\n```\n不翻译\n```\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site" / "sub").mkdir(parents=True)
    (tmp_path / "site" / "a.html").write_text(PAGE, encoding="utf-8")
    (tmp_path / "site" / "sub" / "b.md").write_text(NOTES, encoding="utf-8")
    (tmp_path / "site" / "c.css").write_text("p {}", encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_documents_are_translated_beside_themselves_and_in_folders(here):
    done = run_regard("translate", "site/a.html", "site/sub/b.md")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    page = (here / "site" / "a.zh.html").read_text(encoding="utf-8")
    assert '<html lang="zh">' in page
    assert "<b>用户手册</b>" in page
    assert "链接</a>" in page
    assert "<pre>stays</pre>" in page
    notes = (here / "site" / "sub" / "b.en.md").read_text(encoding="utf-8")
    assert notes.startswith("# User")
    assert "[user manual](m.html)" in notes
    assert notes.endswith("```\n不翻译\n```\n")
    again = run_regard("translate", "site/a.html", "--json")
    assert again.returncode == 2
    assert "exists" in json.loads(again.stdout)["error"]
    (here / "site" / "a.zh.html").unlink()
    (here / "site" / "sub" / "b.en.md").unlink()
    (here / "site" / "bad.html").write_bytes(b"<p>\xff\xfe\xfd")
    whole = run_regard("translate", "site", "-o", "site/out")
    assert whole.returncode == 2, "bad.html cannot be read"
    assert "skipped 1 file of other formats: c.css" in whole.stderr
    assert (here / "site" / "out" / "a.html").read_text(encoding="utf-8") == page
    assert (here / "site" / "out" / "sub" / "b.md").read_text(encoding="utf-8") == notes
    assert not (here / "site" / "out" / "bad.html").exists()


def test_what_cannot_be_written_is_refused_before_anything_is_translated(here):
    (here / "x.md").write_text("x", encoding="utf-8")
    for words, code in (
        (["site"], "path_as_text"),
        (["site/c.css", "-o", "d.css"], "unknown_format"),
        (["nowhere.html", "-o", "x.html"], "missing_file"),
        (["site/a.html", "x.md", "-o", "x.md"], "one_output"),
        (["-o", "x.html"], "no_files"),
        (["a text", "--force"], "missing_option"),
        (["x.md", "--scores"], "option_of_texts"),
    ):
        done = run_regard("translate", *words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert f"error[{code}]" in done.stderr, done.stderr


@pytest.mark.slow
def test_inline_markup_of_texts_is_at_the_right_words():
    model = regard.load()
    found = model.translate(
        [
            "Please read the **user manual** before you click [the link](https://example.com/a).",
            "请在点击<a href='x'>下载链接</a>之前阅读<b>用户手册</b>。",
            "Water is H<sub>2</sub>O.",
            "<p>The <b>cat</b> sleeps.</p><p>The dog runs.</p>",
        ]
    )
    assert "**用户手册**" in found[0].text
    assert "链接](https://example.com/a)" in found[0].text
    assert "<b>user manual</b>" in found[1].text
    assert "<a href='x'>download link</a>" in found[1].text
    assert "H<sub>2</sub>O" in found[2].text
    assert "<b>猫</b>" in found[3].text
    assert found[3].text.count("<p>") == found[3].text.count("</p>") == 2
    (aligned,) = model.translate(["The <b>cat</b> sleeps."], alignment=True)
    for link in aligned.alignment:
        assert aligned.text[link.target_start : link.target_end] == link.target
        assert "The <b>cat</b> sleeps."[link.source_start : link.source_end] == link.source
    (plain,) = model.translate(["**x** stays"], markup=False)
    assert isinstance(plain.text, str)


@pytest.mark.slow
def test_a_file_is_translated_in_python(here):
    report = regard.load().translate_file("site/a.html", "page.html")
    assert (report.from_language, report.to_language, report.segments) == ("en", "zh", 1)
    assert "<b>用户手册</b>" in (here / "page.html").read_text(encoding="utf-8")
