"""The gallery: saved pages of three kinds of models, in both languages, which need no server."""

import json
import re
import zlib
from base64 import b64decode

import pytest

from tests.architecture.sources import ROOT
from tests.tools.links import dead_links
from tools.gallery import FOLDER, SavedPage, gallery_page, saved_pages
from tools.site import Site


def test_a_page_is_described_in_both_languages():
    titles, notes = {"en": "A cat", "zh": "一只猫"}, {"en": "Look.", "zh": "看。"}
    page = SavedPage("cat", titles, notes, "猫\n坐", "x" * 1_200_000, "<svg/>")
    english, chinese = (gallery_page([page], language) for language in ("en", "zh"))
    assert "[all heads](cat.html#lang=en&screen=map)" in english
    assert "[全部注意力头](cat.html#lang=zh&screen=map)" in chinese
    assert "> 猫\n> 坐\n\nLook.\n" in english
    assert "(1.2 MB)" in chinese


@pytest.mark.slow
def test_the_gallery_has_a_translator_a_classifier_and_a_generator(tmp_path):
    saved = list(saved_pages())
    architectures = set()
    for page in saved:
        held = json.loads(re.search(r'id="held">(.*?)</script>', page.html, re.DOTALL)[1])
        kept = json.loads(zlib.decompress(b64decode(held["text"])))
        architectures.add(kept["about"]["architecture"])
        assert len(page.html.encode()) <= 4_000_000, page.name
        assert "://" not in re.sub(r'"http://www\.w3\.org/[^"]*"', "", page.html.partition("id=")[0])
    assert architectures == {"encoder-decoder", "encoder", "decoder"}
    site = Site(ROOT)
    for name, language in (("README.md", "en"), ("README.zh.md", "zh")):
        site.add(f"{FOLDER}/{name}", gallery_page(saved, language))
    site.build(tmp_path / "site")
    for page in saved:
        page.write(tmp_path / "site" / FOLDER)
    assert list(dead_links(tmp_path / "site")) == []
    start = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert f'href="{FOLDER}/index.html"' in start
