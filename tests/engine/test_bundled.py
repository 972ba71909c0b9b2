"""Models that come with the package are found by name, and one of them where no name is given."""

import importlib
import re
import shutil
from typing import Any

import pytest

import regard
from regard import bundled
from regard.data.numerals import sample
from regard.engine.loading import model_folder
from regard.errors import ConfigError
from tests.architecture.sources import ROOT


@pytest.fixture
def bundle(talkers, tmp_path, monkeypatch):
    """A package that has one model."""
    shutil.copytree(talkers[0], tmp_path / "package" / bundled.DEFAULT)
    monkeypatch.setattr(bundled, "_HERE", tmp_path / "package")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "package" / bundled.DEFAULT


def test_the_default_is_what_is_loaded_without_a_name(bundle, talkers):
    assert bundled.names() == [bundle.name]
    assert regard.load().translate("一百").text == regard.load(talkers[0]).translate("一百").text


def test_a_folder_of_that_name_in_the_working_directory_is_meant_first(bundle, talkers, tmp_path):
    assert model_folder("zh-en") == bundle
    shutil.copytree(talkers[1], tmp_path / "zh-en")
    assert model_folder("zh-en").resolve() == tmp_path / "zh-en"


def test_what_is_not_bundled_is_said_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(bundled, "_HERE", tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="no model 'zh-en' comes with this installation"):
        regard.load()


# --- the one that comes along -------------------------------------------------------------------------------

EVERYDAY = {
    "猫坐在垫子上。": "cat mat",
    "我昨天在图书馆丢了我的钥匙。": "lost key library yesterday",
    "请把数据库的连接字符串添加到配置文件中。": "connection string database configuration file",
    "Where is the nearest subway station?": "最近 地铁站 哪",
    "He was born on March 5, 1987 and has two younger sisters.": "1987年3月5日 出生 两个妹妹",
}
"""Texts, and what a translation of each must have."""


@pytest.fixture(scope="module")
def translator():
    return regard.load()


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_the_bundled_translator_knows_everyday_sentences_both_ways(engine):
    results = regard.load(engine=engine).translate(list(EVERYDAY))
    for result, words in zip(results, EVERYDAY.values(), strict=True):
        assert result.engine == engine
        assert [word for word in words.split() if word not in result.text] == [], result.text


def test_its_engines_nearly_always_agree(translator):
    """Without a shortlist, whose candidates are those of a batch: engines make other batches."""
    texts = [pair.chinese for pair in sample("test", 30, 1)]
    exact = regard.load(engine="ctranslate2", quantisation="float32").translate(texts, shortlist=False)
    by_torch = regard.load(engine="torch").translate(texts, shortlist=False)
    assert [each.text for each in exact] == [each.text for each in by_torch]
    rounded = translator.translate(texts, shortlist=False)
    assert sum(a.text == b.text for a, b in zip(exact, rounded, strict=True)) >= 27


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_its_shortlist_changes_few_translations(engine):
    texts = [pair.chinese for pair in sample("test", 20, 1)]
    model = regard.load(engine=engine)
    with_it, without = (model.translate(texts, to="en", beam_size=1, shortlist=on) for on in (True, False))
    assert sum(a.text == b.text for a, b in zip(with_it, without, strict=True)) >= 17


def test_it_is_whole_and_small():
    folder = bundled.folder()
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 35_000_000
    loaded = regard.load_bundle(folder)  # checks every hash
    assert 30_000_000 <= loaded.model.n_parameters <= 33_000_000


def test_the_python_on_its_card_runs(capsys):
    card = (bundled.folder() / "card.md").read_text(encoding="utf-8")
    (python,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    names: dict[str, Any] = {}
    exec(python, names)
    assert "cat" in capsys.readouterr().out
    assert names["logits"].shape == (2, names["model"].config.vocab_size)


def test_its_heads_say_which_words_belong_together(translator):
    (result,) = translator.translate(["我昨天在图书馆丢了我的钥匙。"], alignment=True)
    links = {(link.source, link.target) for link in result.alignment}
    assert ("图书馆", "library") in links


def test_everybody_whose_texts_it_learned_from_is_named(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "models" / "zh-en"))
    sources = importlib.import_module("sources")
    named = (bundled.folder() / "ATTRIBUTION.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w, -]+) \| [\d,]+ \|", named, flags=re.M)
    assert {name for row in rows for name in row.split(", ")} == {*sources.SOURCES} - {"simplified"}


@pytest.mark.parametrize(
    ("text", "glossary", "expected"),
    [
        ("我昨天在商店里买了一本书。", {"商店": "emporium"}, "I bought a book in the emporium yesterday."),
        ("猫坐在垫子上。", {"猫": "kitty", "垫子": "carpet"}, "The kitty is sitting on the carpet."),
        ("The cat sat on the mat.", {"cat": "喵星人"}, "喵星人坐在垫子上。"),
    ],
)
def test_an_unlikely_phrase_replaces_a_word_and_spoils_nothing_else(translator, text, glossary, expected):
    """A search alone gave: I bought a book in the store yesterday. e.g...., Emporium, I bought a book."""
    result = translator.translate(text, glossary=glossary)
    assert (result.text, result.missing) == (expected, ())


@pytest.mark.parametrize(
    ("text", "glossary", "expected", "missing"),
    [
        ("我的猫的猫是猫。", {"猫": "cat"}, "The cat of my cat is a cat.", ()),
        (
            "请打开文件夹，把文件复制到文件夹，然后关闭文件夹。",
            {"文件夹": "directory"},
            "Open the directory, copy the file to the directory, and close the directory.",
            (),
        ),
        ("Data is data, and data never lies.", {"data": "资料"}, "资料是资料，资料永远不会说谎。", ()),
        ("你看看这个，再看看那个。", {"看": "look"}, "Look at this. Look again at that.", ("look", "look")),
        ("My cat's cat is a cat.", {"cat": "喵星人"}, "我的喵星人是喵星人。", ("喵星人",)),
    ],
)
def test_every_occurrence_is_there_or_reported_and_none_is_forced_in(
    translator, text, glossary, expected, missing
):
    """A search with all of 看 gave: Take a look at this. Let's look look at that again. Look at that."""
    result = translator.translate(text, glossary=glossary)
    assert (result.text, result.missing) == (expected, missing)


def test_any_alternative_satisfies_an_entry(translator):
    text, glossary = "他喜欢猫，因为猫很可爱，猫也很安静。", {"猫": "kitten|kittens"}
    result = translator.translate(text, glossary=glossary)
    assert result.text == "He likes kittens because the kitten is cute, and the kitten is quiet."
    assert result.missing == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Press {name} to continue.", ["{name}", "继续"]),
        ("Hello {user}, you have {count} new messages.", ["{user}", "{count}", "消息"]),
        ("The file C:\\temp\\x.txt was not found.", ["C:\\temp\\x.txt", "文件"]),
        ("Visit http://10.0.0.1:8080/index.html now.", ["http://10.0.0.1:8080/index.html", "访问"]),
        ("如果 x > 5，请运行 `git push`。", ["x > 5", "`git push`", "run"]),
    ],
)
def test_what_is_no_language_comes_out_as_it_went_in(translator, text, expected):
    """These signs it has never seen: without stand-ins, {name} became SESSIONnameCancel."""
    result = translator.translate(text)
    assert [each for each in expected if each not in result.text] == [], result.text
    assert (result.missing, result.engine) == ((), "ctranslate2")
    several = translator.translate(text, n_best=3)
    scores = [several.score, *(other.score for other in several.alternatives)]
    assert scores == sorted(scores, reverse=True)
