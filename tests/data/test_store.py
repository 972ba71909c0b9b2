"""What is written into a token store comes out as it went in, and a damaged store is refused."""

import json
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import store as reading
from regard.data.store import MANIFEST, Side, StoredFile, StoreFacts, facts_as_json, find_store, open_store
from regard.data.store import writing as writing
from regard.data.store.writing import write_store
from tests.data.stores import PAIRS, as_lists, write
from tests.refusals import refused

sequence = st.lists(st.integers(0, 16), max_size=7)


@given(st.lists(st.tuples(sequence, sequence), max_size=29), st.integers(1, 11), st.data())
def test_examples_come_out_as_they_went_in(tmp_path_factory, pairs, at_once, data):
    folder, pairs = tmp_path_factory.mktemp("stores") / "store", [*pairs, ([1], [2])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "AT_ONCE", at_once)
        written = write(folder, pairs, vocab_size=17)
    indices = np.array(data.draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1, max_size=7)))
    for store in (written, open_store(folder)):
        assert as_lists(store) == pairs
        for side, facts in enumerate(store.facts.sides):
            expected = [pairs[i][side] for i in indices]
            gathered, lengths = store.gather(side, indices)
            assert gathered.tolist() == [*chain.from_iterable(expected)]
            assert lengths.tolist() == store.lengths(side, indices).tolist() == [*map(len, expected)]
            assert facts.n_tokens == sum(len(pair[side]) for pair in pairs)
            assert facts.longest == max(len(pair[side]) for pair in pairs)
            assert len(pairs[facts.longest_at][side]) == facts.longest


@pytest.mark.parametrize(("vocab_size", "width"), [(65_535, 2), (65_536, 2), (65_537, 4), (2**32, 4)])
def test_ids_are_as_wide_as_the_vocabulary_needs(tmp_path, vocab_size, width):
    largest = vocab_size - 1
    store = write(tmp_path / "store", [([largest, 0], [largest])], vocab_size=vocab_size)
    assert as_lists(store) == [([largest, 0], [largest])]
    assert [ids.dtype.itemsize for ids in store.ids] == [width, width]
    assert (tmp_path / "store" / "inputs.ids").stat().st_size == 2 * width


def test_one_side_or_three_will_do(tmp_path):
    for sides in (("outputs",), ("inputs", "outputs", "scores")):
        examples = [[[1, 2]] * len(sides), [[3]] * len(sides)]
        store = write(tmp_path / "store", examples, sides=sides)
        assert as_lists(store) == [tuple(example) for example in examples]


def test_an_example_that_is_not_there_is_an_index_error(tmp_path):
    store = write(tmp_path / "store")
    for i in (-1, len(PAIRS)):
        with pytest.raises(IndexError):
            store[i]


def test_reading_continues_after_the_memory_was_released(tmp_path):
    store = write(tmp_path / "store")
    for i in range(len(store)):
        store.expect([(i, len(store))])
        store.release()
    assert as_lists(store) == PAIRS


def test_a_part_of_a_store_is_a_store(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "RELEASE_EVERY", 2)
    store = write(tmp_path / "store")
    part = store.part([(2, 3), (0, 2), (3, 4)])
    assert as_lists(part) == [PAIRS[2], *PAIRS[:2], PAIRS[3]]
    assert part.gather(1, np.array([2, 0]))[0].tolist() == PAIRS[1][1] + PAIRS[2][1]
    assert as_lists(part.part([(3, 4), (1, 2)])) == [PAIRS[3], PAIRS[0]]


def test_offsets_beyond_four_thousand_million_tokens(tmp_path):
    """Two examples at the far end of a file with a hole in it, which takes no room on the disk."""
    far, folder = (1 << 33) + 7, tmp_path / "store"
    folder.mkdir()
    with (folder / "outputs.ids").open("wb") as file:
        file.seek(2 * far)
        file.write(np.array([11, 12, 13], "<u2").tobytes())
    (folder / "outputs.offsets").write_bytes(np.array([0, far, far + 1, far + 3], "<i8").tobytes())
    sizes = [StoredFile((folder / f"outputs.{kind}").stat().st_size, 0) for kind in ("ids", "offsets")]
    side = Side("outputs", far + 3, far, 0, *sizes)
    (folder / MANIFEST).write_bytes(facts_as_json(StoreFacts("a key", 17, 3, (side,))))
    store = open_store(folder)
    assert store[2][0].tolist() == [12, 13]
    assert store.gather(0, np.array([2, 1]))[0].tolist() == [12, 13, 11]
    assert store.lengths(0, np.array([0])).tolist() == [far]
    assert as_lists(store.part([(1, 3)])) == [([11],), ([12, 13],)]


def test_offsets_go_on_where_the_last_ones_ended(tmp_path):
    with writing.ExitStack() as files:
        side = writing._SideWriter(tmp_path, "outputs", StoreFacts("a key", 17, 0, ()), files)
        side.n_tokens = 1 << 40
        side.append([np.array([1, 2, 3]), np.array([4])], first=0)
    offsets = np.fromfile(tmp_path / "outputs.offsets", "<i8")
    assert offsets.tolist() == [0, (1 << 40) + 3, (1 << 40) + 4]


def test_an_empty_store_is_refused(tmp_path):
    with refused("no_examples"):
        write(tmp_path / "store", [])
    with refused("no_examples", "2 examples", "outputs"):
        write(tmp_path / "store", [([1], []), ([2], [])])
    assert list(tmp_path.iterdir()) == []


def test_an_example_that_does_not_fit_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "AT_ONCE", 2)
    good, folder = ([1], [2]), tmp_path / "store"
    for example, place in {
        (((1,), (13,))): "example 4, outputs: 13 is not an id of this vocabulary, which has 13",
        (((-1,), (2,))): "example 4, inputs: -1 ",
        ((1,),): "example 4 has 1 sides, not 2: inputs, outputs",
    }.items():
        with refused("bad_example", place):
            write(folder, [good, good, good, example, good])
    with refused("bad_example", "example 1, outputs", "float64"):
        write_store(
            folder, [(np.array([1]), np.array([0.5]))], sides=("inputs", "outputs"), key="", vocab_size=9
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["inputs.ids", "inputs.offsets", "outputs.ids", "outputs.offsets"])
@pytest.mark.parametrize("damage", ["truncated", "longer", "changed", "missing", "empty"])
def test_a_damaged_store_is_refused_and_not_found(tmp_path, name, damage):
    write(tmp_path / "store")
    path = tmp_path / "store" / name
    data = path.read_bytes()
    match damage:
        case "truncated":
            path.write_bytes(data[:-1])
        case "longer":
            path.write_bytes(data + b"\0")
        case "changed":
            path.write_bytes(bytes([data[0] ^ 1]) + data[1:])
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
    with refused("damaged_store", str(tmp_path / "store"), name):
        open_store(tmp_path / "store")
    assert find_store(tmp_path / "store", "a key") is None
    assert as_lists(write(tmp_path / "store")) == PAIRS  # and can be written again


def test_a_large_store_is_read_through_only_when_asked_to(tmp_path, monkeypatch):
    write(tmp_path / "store")
    data = (tmp_path / "store" / "inputs.ids").read_bytes()
    (tmp_path / "store" / "inputs.ids").write_bytes(bytes(len(data)))
    monkeypatch.setattr(reading, "READ_THROUGH", 10)
    open_store(tmp_path / "store")
    with refused("damaged_store", "inputs.ids"):
        open_store(tmp_path / "store", thorough=True)


def test_a_changed_manifest_is_refused(tmp_path):
    write(tmp_path / "store")
    path = tmp_path / "store" / MANIFEST
    table = json.loads(path.read_bytes())
    for change, code, place in [
        ({"n_examples": 5}, "damaged_store", MANIFEST),
        ({"format": 2, "regard": "9.0"}, "other_format", "regard 9.0"),
        ({"hash": None}, "not_a_store", MANIFEST),
    ]:
        path.write_text(json.dumps(table | change))
        with refused(code, place):
            open_store(tmp_path / "store")
    damaged, foreign = ("", "{", "[" * 100_000, "\0"), ("[1]", '{"format": 1}')
    for text in (*damaged, *foreign):
        path.write_text(text)
        with refused("damaged_store" if text in damaged else "not_a_store", MANIFEST):
            open_store(tmp_path / "store")


def test_what_is_no_store_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("dear")
    for name in ("missing", "empty", "file"):
        with refused("not_a_store", str(tmp_path / name)):
            open_store(tmp_path / name)
        assert find_store(tmp_path / name, "a key") is None


def test_a_store_is_found_by_its_key(tmp_path):
    write(tmp_path / "store", key="a key")
    found = find_store(tmp_path / "store", "a key")
    assert found is not None
    assert as_lists(found) == PAIRS
    assert find_store(tmp_path / "store", "another") is None
