"""Options with several files, and columns, on the command line."""

import pytest

from regard.cli.shared.data_files import parse_columns, repeat_for_pairs


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
