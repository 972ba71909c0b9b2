import io
import os
import sys
import threading

import pytest

from regard.data.reading import parallel_corpus, refuse_shared_files, table_corpus, text_corpus
from regard.text import Tally
from tests.refusals import refused


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        (tmp_path / name).write_bytes(content.encode())
        return tmp_path / name

    return write


def test_pairs_come_in_blocks_with_their_place(write):
    inputs, outputs = write("a.zh", "猫 \n狗\n"), write("a.en", " cat\ndog\n")
    (block,) = parallel_corpus(inputs, outputs).blocks()
    assert (block.name, block.first) == (str(inputs), 1)
    assert block.columns == (["猫", "狗"], ["cat", "dog"])


def test_a_corpus_is_read_as_often_as_one_likes(write):
    corpus = parallel_corpus(write("a", "x\n"), write("b", "y\n"))
    assert list(corpus.rows()) == list(corpus.rows()) == [("x", "y")]
    assert corpus.n_sides == 2


def test_texts_follow_each_other_and_keep_their_own_line_numbers(write):
    corpus = text_corpus(write("a", "1\n2\n"), write("b", "3\n"))
    assert list(corpus.rows()) == [("1",), ("2",), ("3",)]
    assert [(block.name[-1], block.first) for block in corpus.blocks()] == [("a", 1), ("b", 1)]
    assert corpus.n_sides == 1


def test_tables_are_read_by_column(write):
    files = write("a.tsv", "label\ttext\nx\t1\n"), write("b.jsonl", '{"text": "2", "label": "y"}\n')
    corpus = table_corpus(*files, columns=["text", "label"])
    assert list(corpus.rows()) == [("1", "x"), ("2", "y")]


def test_rows_leave_out_what_is_spoilt(write, tmp_path):
    (tmp_path / "a").write_bytes(b"1\n\xff\n3\n")
    corpus = parallel_corpus(tmp_path / "a", write("b", "x\ny\nz\n"), on_invalid="drop")
    assert list(corpus.rows()) == [("1", "x"), ("3", "z")]


def test_repairs_are_counted_while_reading(write):
    repairs = Tally()
    list(parallel_corpus(write("a", "\ufeffx\n"), write("b", "y\r\n")).rows(repairs))
    assert repairs.counts == {"byte order mark": 1, "carriage return": 1}


def test_every_missing_file_and_directory_is_named_at_once(tmp_path):
    with refused("missing_file", "none.zh: ", f"{tmp_path}: is a directory"):
        parallel_corpus(tmp_path / "none.zh", tmp_path)


def test_the_same_file_twice_is_refused_also_under_another_name(write, tmp_path):
    path = write("a", "x\n")
    (tmp_path / "link").symlink_to(path)
    os.link(path, tmp_path / "hard")
    for other in (path, tmp_path / "link", tmp_path / "hard", tmp_path / ".." / tmp_path.name / "a"):
        with refused("repeated_file"):
            parallel_corpus(path, other)
        with refused("repeated_file"):
            text_corpus(path, other)
    with refused("repeated_file", "standard input: "):
        parallel_corpus("-", "-")


def test_the_same_file_for_training_and_validation_is_refused(write):
    a, b, c = write("a", "x\n"), write("b", "y\n"), write("c", "z\n")
    refuse_shared_files({"training": parallel_corpus(a, b), "validation": text_corpus(c)})
    with refused("repeated_file", "b: is given for training and for test"):
        refuse_shared_files(
            {"training": parallel_corpus(a, b), "validation": text_corpus(c), "test": parallel_corpus(c, b)}
        )


@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_an_empty_file_is_refused(write, name):
    with refused("empty_file", f"{name}: "):
        list(text_corpus(write(name, "")).rows())
    with refused("empty_file", f"{name}: "):
        list(parallel_corpus(write(name, ""), write("b", "")).rows())


def test_a_table_with_nothing_but_a_head_is_refused(write):
    with refused("empty_file", "a.tsv: "):
        list(table_corpus(write("a.tsv", "x\ty\n"), columns=["x"]).rows())


@pytest.mark.parametrize("columns", [[], ["x", 2]])
def test_columns_by_name_and_by_number_do_not_mix(write, columns):
    with refused("mixed_columns"):
        table_corpus(write("a.tsv", "x\ty\n"), columns=columns)


def test_standard_input_can_be_read_again_too(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO('{"a": "x", "b": "猫"}\n'.encode())))
    corpus = table_corpus("-", columns=["b", "a"], scratch=tmp_path)
    assert list(corpus.rows()) == list(corpus.rows()) == [("猫", "x")]
    assert corpus.names == ("standard input",)
    assert corpus.paths[0].is_relative_to(tmp_path)


def test_so_can_a_pipe(write, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=["x\ny\n"])
    writer.start()
    corpus = parallel_corpus(pipe, write("b", "1\n2\n"))
    writer.join()
    assert list(corpus.rows()) == list(corpus.rows()) == [("x", "1"), ("y", "2")]


def test_no_room_for_a_copy_of_standard_input_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x\n")))
    with refused("unwritable_folder", "standard input: ", "none"):
        text_corpus("-", scratch=tmp_path / "none")
