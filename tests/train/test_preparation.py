import json
import shutil

import pytest

from regard.data.corpus import parallel
from regard.data.numerals import sample
from regard.errors import CorpusError
from regard.train.preparation import PairsSource, prepare_pairs


def write(folder, name, pairs):
    folder.mkdir(exist_ok=True)
    paths = folder / f"{name}.zh", folder / f"{name}.en"
    for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return parallel(*paths)


@pytest.fixture
def source(tmp_path):
    train = write(tmp_path / "text", "train", sample("train", 600, 1))
    return PairsSource(train=train, languages=("zh", "en"), vocab_size=600, max_tokens=64)


def test_a_store_holds_the_files_in_subwords_and_nothing_held_out(tmp_path, source):
    told = []
    prepared = prepare_pairs(tmp_path / "data", source, told.append)
    store, subwords = prepared.data.train, prepared.subwords
    texts = {tuple(subwords.decode(ids) for ids in store[i]) for i in range(len(store))}
    assert texts <= set(source.train.rows())
    assert len(prepared.test) == len(prepared.data.valid) == 12
    assert not texts & set(prepared.test)
    assert any("600 lines" in words for words in told)
    assert json.loads((tmp_path / "data" / "report.json").read_text())["training"] == len(store)


def test_what_is_prepared_is_taken_again_while_the_files_stay_the_same(tmp_path, source):
    first, told = prepare_pairs(tmp_path / "data", source), []
    again = prepare_pairs(tmp_path / "data", source, told.append)
    assert told == []
    assert again.test == first.test
    assert again.data.train.facts == first.data.train.facts
    with source.train.paths[0].open("a") as zh, source.train.paths[1].open("a") as en:
        zh.write("新的一行，从来没有过。\n")
        en.write("A new line that never was.\n")
    changed = prepare_pairs(tmp_path / "data", source, told.append)
    assert told != []
    assert changed.data.train.facts.key != first.data.train.facts.key


def test_sets_that_are_given_are_used_whole_and_kept_out_of_training(tmp_path, source):
    pairs = list(source.train.rows())
    valid, test = (
        write(tmp_path / "text", "valid", pairs[:20]),
        write(tmp_path / "text", "test", pairs[20:50]),
    )
    given = PairsSource(
        train=source.train, valid=valid, test=test, languages=("zh", "en"), vocab_size=600, max_tokens=64
    )
    prepared = prepare_pairs(tmp_path / "data", given)
    assert prepared.test == pairs[20:50]
    assert len(prepared.data.valid) == 20
    store, decode = prepared.data.train, prepared.subwords.decode
    assert not {decode(store[i][0]) for i in range(len(store))} & {pair[0] for pair in pairs[:50]}


def test_a_crash_in_the_middle_is_done_over(tmp_path, source):
    prepare_pairs(tmp_path / "data", source)
    (tmp_path / "data" / "key").unlink()
    (tmp_path / "data" / "subwords.model").write_bytes(b"half of")
    assert prepare_pairs(tmp_path / "data", source).subwords.vocab_size > 300


def test_a_store_that_was_deleted_is_made_again(tmp_path, source):
    first = prepare_pairs(tmp_path / "data", source)
    shutil.rmtree(tmp_path / "data" / "train")
    assert prepare_pairs(tmp_path / "data", source).data.train.facts == first.data.train.facts


def test_lines_for_the_test_that_are_empty_or_too_long_are_left_out_and_counted(tmp_path, source):
    rows = [("一", "one"), ("", ""), ("二" * 200, "two"), ('"三"', 'three "quoted"\ttab')]
    test, told = write(tmp_path / "text", "test", rows), []
    given = PairsSource(train=source.train, test=test, languages=("zh", "en"), vocab_size=600, max_tokens=64)
    assert prepare_pairs(tmp_path / "data", given, told.append).test == [rows[0], rows[3]]
    assert any("2 of 4 lines of the test set" in words for words in told)
    report = json.loads((tmp_path / "data" / "report.json").read_text(encoding="utf-8"))
    assert report["lines"] == report["training"] + report["split_off"] + sum(
        entry["lines"] for entry in report["dropped"].values()
    )


def test_a_validation_set_of_empty_lines_is_refused(tmp_path, source):
    empty = write(tmp_path / "text", "empty", [("", "")] * 3)
    given = PairsSource(
        train=source.train, valid=empty, languages=("zh", "en"), vocab_size=600, max_tokens=64
    )
    with pytest.raises(CorpusError, match="validation"):
        prepare_pairs(tmp_path / "data", given)
