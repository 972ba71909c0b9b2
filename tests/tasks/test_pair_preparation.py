import json
import shutil
from dataclasses import replace

import pytest

from regard import DataConfig, RunConfig
from regard.data.numerals import sample
from regard.data.reading import parallel_corpus, table_corpus
from regard.tasks.pair_preparation import PairsSource, prepare_pairs
from regard.tasks.task import Reporter
from regard.tasks.translate import Translate
from tests.refusals import refused


def prepare(folder, source, messages=None):
    """Prepare pairs, and read them; messages are added to a list."""
    hear = [] if messages is None else [lambda event: messages.append(event.get("message", ""))]
    prepare_pairs(folder, source, Reporter(hear))
    return Translate().prepared(folder, RunConfig())


def write(folder, name, pairs):
    folder.mkdir(exist_ok=True)
    paths = folder / f"{name}.zh", folder / f"{name}.en"
    for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return parallel_corpus(*paths)


@pytest.fixture
def source(tmp_path):
    train = write(tmp_path / "text", "train", sample("train", 600, 1))
    return PairsSource(train=train, languages=("zh", "en"), vocab_size=600, max_tokens=64)


def test_a_store_holds_the_files_in_subwords_and_nothing_held_out(tmp_path, source):
    messages = []
    prepared = prepare(tmp_path / "data", source, messages)
    store, subwords = prepared.lesson.train, prepared.subwords
    texts = {tuple(subwords.decode(ids) for ids in store[i]) for i in range(len(store))}
    assert texts <= set(source.train.rows())
    assert len(prepared.test) == len(prepared.lesson.valid) == 60
    assert not texts & set(prepared.test)
    assert any("600 lines" in words for words in messages)
    assert json.loads((tmp_path / "data" / "report.json").read_text())["training"] == len(store)


def test_what_is_prepared_is_taken_again_while_the_files_stay_the_same(tmp_path, source):
    first, messages = prepare(tmp_path / "data", source), []
    again = prepare(tmp_path / "data", source, messages)
    assert messages == []
    assert again.test == first.test
    assert again.lesson.train.facts == first.lesson.train.facts
    with source.train.paths[0].open("a") as zh, source.train.paths[1].open("a") as en:
        zh.write("新的一行，从来没有过。\n")
        en.write("A new line that never was.\n")
    changed = prepare(tmp_path / "data", source, messages)
    assert messages != []
    assert changed.lesson.train.facts.key != first.lesson.train.facts.key


def test_sets_that_go_the_other_way_are_named(tmp_path, source):
    turned = [(english, chinese) for chinese, english in sample("train", 30, 2)]
    messages = []
    given = replace(source, valid=write(tmp_path / "text", "valid", turned))
    prepare(tmp_path / "data", given, messages)
    (warning,) = (message for message in messages if "from en to zh" in message)
    assert warning.startswith("warning: the validation set: 30 of 30 ")


def test_sets_that_are_given_are_used_whole_and_kept_out_of_training(tmp_path, source):
    pairs = list(source.train.rows())
    valid, test = (
        write(tmp_path / "text", "valid", pairs[:20]),
        write(tmp_path / "text", "test", pairs[20:50]),
    )
    given = PairsSource(
        train=source.train, valid=valid, test=test, languages=("zh", "en"), vocab_size=600, max_tokens=64
    )
    prepared = prepare(tmp_path / "data", given)
    assert prepared.test == pairs[20:50]
    assert len(prepared.lesson.valid) == 20
    store, decode = prepared.lesson.train, prepared.subwords.decode
    assert not {decode(store[i][0]) for i in range(len(store))} & {pair[0] for pair in pairs[:50]}


def test_a_crash_in_the_middle_is_done_over(tmp_path, source):
    prepare(tmp_path / "data", source)
    (tmp_path / "data" / "key").unlink()
    (tmp_path / "data" / "subwords.model").write_bytes(b"half of")
    assert prepare(tmp_path / "data", source).subwords.vocab_size > 300


def test_a_store_that_was_deleted_is_made_again(tmp_path, source):
    first = prepare(tmp_path / "data", source)
    shutil.rmtree(tmp_path / "data" / "train")
    assert prepare(tmp_path / "data", source).lesson.train.facts == first.lesson.train.facts


def test_lines_for_the_test_that_are_empty_or_too_long_are_left_out_and_counted(tmp_path, source):
    rows = [("一", "one"), ("", ""), ("二" * 200, "two"), ('"三"', 'three "quoted"\ttab')]
    test, messages = write(tmp_path / "text", "test", rows), []
    given = PairsSource(train=source.train, test=test, languages=("zh", "en"), vocab_size=600, max_tokens=64)
    assert prepare(tmp_path / "data", given, messages).test == [rows[0], rows[3]]
    assert any("2 of 4 lines of the test set" in words for words in messages)
    report = json.loads((tmp_path / "data" / "report.json").read_text(encoding="utf-8"))
    assert report["lines"] == report["training"] + report["split_off"] + sum(
        entry["lines"] for entry in report["dropped"].values()
    )


def test_a_validation_set_of_empty_lines_is_refused(tmp_path, source):
    empty = write(tmp_path / "text", "empty", [("", "")] * 3)
    given = PairsSource(
        train=source.train, valid=empty, languages=("zh", "en"), vocab_size=600, max_tokens=64
    )
    with refused("no_usable_rows", "validation"):
        prepare(tmp_path / "data", given)


def test_a_text_of_the_test_set_leaves_the_validation_set_and_is_counted(tmp_path, source):
    pairs = list(source.train.rows())
    shared = [pairs[21], (pairs[22][0], "Another Translation"), ("别的话", pairs[23][1].upper() + "!")]
    valid = write(tmp_path / "text", "valid", [*pairs[:10], *shared, *pairs[10:20]])
    test = write(tmp_path / "text", "test", pairs[20:50])
    messages = []
    given = replace(source, valid=valid, test=test)
    prepared = prepare(tmp_path / "data", given, messages)
    assert len(prepared.lesson.valid) == 20
    assert prepared.test == pairs[20:50]
    report = json.loads((tmp_path / "data" / "report.json").read_text(encoding="utf-8"))
    places = [f"{valid.names[0]}:{line}" for line in (11, 12, 13)]
    assert report["left_out_of_validation"] == {"in the test set": {"lines": 3, "first": places}}
    assert report["validation"] == 20
    assert any("left out of validation" in words and "13.04%" in words for words in messages)


def test_nothing_is_left_out_of_a_validation_set_when_the_test_set_is_split_off(tmp_path, source):
    valid = write(tmp_path / "text", "valid", list(source.train.rows())[:20])
    prepared = prepare(tmp_path / "data", replace(source, valid=valid))
    assert len(prepared.lesson.valid) == 20
    assert not {zh for zh, _ in prepared.test} & {zh for zh, _ in valid.rows()}


def test_a_validation_set_that_is_the_test_set_is_refused(tmp_path, source):
    pairs = list(source.train.rows())[:20]
    valid, test = (write(tmp_path / "text", name, pairs) for name in ("valid", "test"))
    with refused("shared_rows", "valid.zh"):
        prepare(tmp_path / "data", replace(source, valid=valid, test=test))


def test_settings_decide_what_is_dropped_and_held_out(tmp_path, source):
    rows = list(source.train.rows())
    long = ("零" * 50, "zero " * 50)
    odd = ("三百", "three hundred " * 20)
    source = replace(source, train=write(tmp_path / "text", "more", [*rows, rows[0], rows[0], long, odd]))

    def counts(name, **settings):
        data = replace(source, max_tokens=500, data=DataConfig(valid_lines=7, test_lines=11, **settings))
        prepared = prepare(tmp_path / name, data)
        assert (len(prepared.lesson.valid), len(prepared.test)) == (7, 11)
        report = json.loads((tmp_path / name / "report.json").read_text(encoding="utf-8"))
        return {why: entry["lines"] for why, entry in report["dropped"].items()}

    assert counts("usual") == {"duplicate": 2, "length ratio": 1}
    assert counts("short", max_characters=200) == {"duplicate": 2, "too long": 2}
    assert counts("any", max_ratio=None) == {"duplicate": 2}
    assert counts("again", drop_duplicates=False) == {"length ratio": 1}


def test_the_key_knows_settings_and_columns(tmp_path, source):
    (tmp_path / "t.tsv").write_text("一\tone\tuno\n")
    sources = [
        source,
        replace(source, data=DataConfig(max_ratio=5.0)),
        replace(source, data=DataConfig(valid_lines=5)),
        *(replace(source, train=table_corpus(tmp_path / "t.tsv", columns=[1, n])) for n in (2, 3)),
    ]
    assert len({each.key() for each in sources}) == len(sources)


def test_both_directions_are_learned_from_with_the_tag_of_the_language_that_is_wanted(tmp_path, source):
    one_way = prepare(tmp_path / "one", source)
    both = replace(source, both_directions=True)
    assert both.key() != source.key()
    prepared = prepare(tmp_path / "both", both)
    assert one_way.subwords.languages == []
    assert prepared.subwords.languages == ["zh", "en"]
    zh, en = map(prepared.subwords.tag_id, ("zh", "en"))
    decode = prepared.subwords.decode
    for name in ("train", "valid"):
        once, twice = getattr(one_way.lesson, name), getattr(prepared.lesson, name)
        assert len(twice) == 2 * len(once)
        for i in range(len(once)):
            pair = tuple(map(one_way.subwords.decode, once[i]))
            (there, output), (back, output_back) = twice[2 * i], twice[2 * i + 1]
            assert (there[0], back[0]) == (en, zh)
            assert (decode(there), decode(output)) == pair
            assert (decode(back), decode(output_back)) == pair[::-1]
    assert prepared.test == one_way.test
    report = json.loads((tmp_path / "both" / "report.json").read_text(encoding="utf-8"))
    assert 2 * report["training"] == len(prepared.lesson.train)


def test_with_its_tag_an_input_must_still_fit(tmp_path, source):
    def longest(name, **changes):
        train = prepare(tmp_path / name, replace(source, max_tokens=17, **changes)).lesson.train
        return max(side.longest for side in train.facts.sides)

    assert longest("one") == longest("both", both_directions=True) == 16


def test_coverage_decides_which_characters_are_spelt_in_bytes(tmp_path, source):
    def pieces(name, coverage):
        data = DataConfig(character_coverage=coverage)
        subwords = prepare(tmp_path / name, replace(source, vocab_size=900, data=data)).subwords
        return subwords.pieces(subwords.encode_one("鑫"))

    with (tmp_path / "text" / "train.zh").open("a") as zh, (tmp_path / "text" / "train.en").open("a") as en:
        zh.write("鑫先生有三本书。\n")
        en.write("Mr Xin has three books.\n")
    assert any(piece.startswith("<0x") for piece in pieces("usual", 0.9995))
    assert "鑫" in "".join(pieces("all", 1.0))
