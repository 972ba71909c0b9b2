"""Options with several files, and columns, on the command line."""

import pytest

from regard.cli.shared.data_files import parse_columns, repeat_for_all, repeat_for_pairs, task_in


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
    assert repeat_for_pairs(words.split()) == parsed.split()


@pytest.mark.parametrize(
    ("words", "parsed"),
    [
        ("--pretrain a b c --out d", "--pretrain a --pretrain b --pretrain c --out d"),
        ("--pretrain=a b c --out d", "--pretrain=a --pretrain b --pretrain c --out d"),
        ("--pretrain - b --task classify", "--pretrain - --pretrain b --task classify"),
        ("t.tsv --pretrain a --valid b", "t.tsv --pretrain a --valid b"),
        ("--pretrain a -- b --pretrain c d", "--pretrain a -- b --pretrain c d"),
    ],
)
def test_pretraining_takes_every_file_up_to_the_next_option(words, parsed):
    assert repeat_for_all(words.split()) == parsed.split()


@pytest.mark.parametrize(
    ("words", "task"),
    [
        ("a b", "translate"),
        ("a --task classify", "classify"),
        ("a --task=classify --config FILE", "classify"),
        ("a --config FILE", "summarise"),
        ("a --config=FILE", "summarise"),
        ("a --config FILE --set task.name=answer", "answer"),
        ("a --set=task.name=answer --set training.seed=2", "answer"),
        ("a --config missing.toml", "translate"),
        ("a --config missing.toml --set task.name=answer", "answer"),
        ("a -- --task classify", "translate"),
    ],
)
def test_the_task_is_read_from_every_option_that_names_one(tmp_path, words, task):
    (tmp_path / "task.toml").write_text('[task]\nname = "summarise"\n')
    assert task_in(words.replace("FILE", str(tmp_path / "task.toml")).split()) == task


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
    assert parse_columns(words) == columns
