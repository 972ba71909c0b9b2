"""What the words after `regard train` name."""

from pathlib import Path

import pytest

from regard.cli.corpora import NamedSets, columns_of, each_named
from regard.errors import ConfigError

PAIR, TABLE = (Path("a.zh"), Path("a.en")), (Path("a.tsv"),)
COLUMNS = ("zh", "en")


@pytest.mark.parametrize(
    ("words", "parsed"),
    [
        ("a b --valid c d", "a b --valid c --valid d"),
        ("--valid c d a b", "--valid c --valid d a b"),
        ("--valid c.tsv a.tsv", "--valid c.tsv a.tsv"),
        ("--test c.jsonl.gz a b", "--test c.jsonl.gz a b"),
        ("--valid=c d a b", "--valid=c --valid d a b"),
        ("--valid=c.tsv a b", "--valid=c.tsv a b"),
        ("--valid c --valid d", "--valid c --valid d"),
        ("--valid c --out d", "--valid c --out d"),
        ("--valid c d --test e f", "--valid c --valid d --test e --test f"),
        ("a --valid", "a --valid"),
        ("-- --valid c d", "-- --valid c d"),
    ],
)
def test_each_file_of_a_set_gets_the_name_of_its_option(words, parsed):
    assert each_named(words.split()) == parsed.split()


@pytest.mark.parametrize(
    ("words", "columns"),
    [
        (None, ()),
        ("zh,en", ("zh", "en")),
        ("translation.zh, translation.en", ("translation.zh", "translation.en")),
        ("2,1", (2, 1)),
        ("1,en", ("1", "en")),
    ],
)
def test_columns_are_names_or_numbers(words, columns):
    assert columns_of(words) == columns


@pytest.mark.parametrize(
    "sets",
    [
        {"train": PAIR},
        {"train": TABLE, "columns": COLUMNS},
        {"train": (Path("-"),), "columns": (1, 2)},
        {"train": (Path("pairs"),), "columns": (1, 2)},
        {"train": TABLE, "valid": PAIR, "test": (Path("t.jsonl.xz"),), "columns": COLUMNS},
        {"train": PAIR, "valid": TABLE, "columns": COLUMNS},
    ],
)
def test_sets_of_files_and_tables_go_together(sets):
    NamedSets(**sets)


@pytest.mark.parametrize(
    ("sets", "complaint"),
    [
        ({"train": ()}, "give two files"),
        ({"train": (Path("a.zh"),)}, "give two files"),
        ({"train": (*PAIR, *TABLE)}, "give two files"),
        ({"train": TABLE}, "a.tsv: which of its columns"),
        ({"train": (Path("-"),)}, "standard input: which of its columns"),
        ({"train": (Path("-"), Path("a.en"))}, "standard input gives both sides"),
        ({"train": PAIR, "columns": COLUMNS}, "--columns is for a table"),
        ({"train": TABLE, "columns": ("zh",)}, "--columns zh are not two different columns"),
        ({"train": TABLE, "columns": ("zh", "zh")}, "--columns zh,zh are not two different columns"),
        ({"train": TABLE, "columns": ("zh", "")}, "--columns zh, are not two different columns"),
        ({"train": TABLE, "columns": (0, 1)}, "--columns 0,1 are not two different columns"),
        ({"train": PAIR, "valid": TABLE}, "a.tsv: which of its columns"),
        ({"train": PAIR, "valid": (Path("b.zh"),)}, "--valid takes two files"),
        ({"train": PAIR, "test": (*PAIR, *PAIR)}, "--test takes two files"),
        ({"train": PAIR, "test": (Path("-"),)}, "--test takes files; standard input"),
    ],
)
def test_sets_that_make_no_sense_are_refused(sets, complaint):
    with pytest.raises(ConfigError) as caught:
        NamedSets(**sets)
    assert complaint in caught.value.problems[0]
    assert len(caught.value.problems) == 1


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(ConfigError) as caught:
        NamedSets(TABLE, valid=(Path("v"),), test=(Path("-"),))
    assert len(caught.value.problems) == 3


def test_a_name_and_a_flag_that_do_not_agree_are_told(capsys):
    NamedSets(PAIR).languages("zh-TW", None)
    assert capsys.readouterr().err == ""
    assert NamedSets(PAIR).languages("xx", "en") == ("xx", "en")
    assert "the name tells zh, and it is taken for xx, as was asked" in capsys.readouterr().err


def test_languages_come_from_flags_then_from_the_names_of_columns_or_files():
    assert NamedSets(PAIR).languages(None, None) == ("zh", "en")
    assert NamedSets(PAIR).languages("deu", "tlh") == ("de", "tlh")
    assert NamedSets(TABLE, columns=("translation.de", "source_en")).languages(None, None) == ("de", "en")
    assert NamedSets(TABLE, columns=("source", "en")).languages("fr", None) == ("fr", "en")
    with pytest.raises(ConfigError) as caught:
        NamedSets((Path("a.zh.tsv"),), columns=(1, 2)).languages(None, None)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["column 1", "column 2"]
    assert "--from en" in caught.value.problems[0]
    assert "--to en" in caught.value.problems[1]
