"""Files and rows as documents: what stays, what is held out, and how long ones are cut into subwords."""

import pytest

from regard.data.reading import documents as module
from regard.data.reading.documents import encode_document, open_documents, split_documents
from regard.text.files.lines import Tally
from regard.text.vocabularies.subwords import Subwords, learn_subwords
from tests.refusals import refused


@pytest.fixture(scope="module")
def subwords():
    return Subwords(learn_subwords(["the cat sat on the mat", "a dog sat"] * 20, 300))


def test_a_plain_file_is_one_document_with_its_blank_lines(tmp_path):
    file = tmp_path / "play.txt"
    file.write_bytes(b"First:\r\nSpeak.\n\n\nSecond:\nNo.\n")
    assert list(open_documents(file).read()) == ["First:\nSpeak.\n\n\nSecond:\nNo."]


def test_of_a_table_each_row_is_one_and_empty_ones_are_counted(tmp_path):
    file = tmp_path / "poems.tsv"
    file.write_text("Spring\tLi\tRain falls.\n\nAutumn\tDu\tLeaves fall.\n", encoding="utf-8")
    empty = Tally()
    found = list(open_documents(file, columns=(1, 3)).read(empty))
    assert found == ["Spring\nRain falls.", "Autumn\nLeaves fall."]
    assert empty.as_dict() == {"empty": {"lines": 1, "first": [f"{file}:2"]}}


def test_columns_are_asked_for_where_there_are_some_and_only_there(tmp_path):
    table, plain = tmp_path / "a.tsv", tmp_path / "b.txt"
    table.write_text("x\ty\n")
    plain.write_text("x\n")
    with refused("missing_columns", "a.tsv: ", "--columns"):
        open_documents(table)
    with refused("unexpected_columns", "b.txt: --columns"):
        open_documents(table, plain, columns=(1,))


def test_the_end_of_a_file_is_held_out_and_nothing_is_lost(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("\n".join(f"line {i}" for i in range(100)) + "\n")
    (head,), (tail,) = split_documents(open_documents(file), None, seed=1)
    assert tail == "\n".join(f"line {i}" for i in range(90, 100))
    assert f"{head}\n{tail}\n" == file.read_text()


def test_rows_that_are_held_out_are_drawn_by_seed(tmp_path):
    file = tmp_path / "rows.tsv"
    file.write_text("".join(f"{i}\n" for i in range(200)))
    source = open_documents(file, columns=(1,))
    train, valid = split_documents(source, 7, seed=1)
    assert len(valid) == 7
    assert sorted([*train, *valid], key=int) == [str(i) for i in range(200)]
    assert split_documents(source, 7, seed=1) == (train, valid)
    assert split_documents(source, 7, seed=2) != (train, valid)


def test_a_text_of_one_line_cannot_be_split(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("all there is")
    with refused("too_little_data"):
        split_documents(open_documents(file), None, seed=1)


def test_a_long_document_is_cut_into_the_same_subwords_in_stretches(subwords, monkeypatch):
    text = "the cat sat\n\non the mat\n a dog  sat\nthe mat"
    whole = subwords.encode_one(text).tolist()
    monkeypatch.setattr(module, "STRETCH", 5)
    assert encode_document(subwords, text).tolist() == whole
    assert subwords.decode(whole) == text
