"""`regard translate`: line i in is line i out, whatever the lines are, and however many."""

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.cli import main
from regard.cli.shared import input_lines, reporting
from regard.cli.shared.input_lines import OPENING, read_arriving
from tests.cli.conftest import Answer

NASTY = "三月\n\n   \n😀\n\x00\x07\r\n四月\u2028五月\x85\x0b\n- 一。二。 \n" + "三" * 700 + "\n五月"


@pytest.fixture
def translate(talker, monkeypatch, capsys):
    """Type `regard translate` and some words; the model has learned next to nothing."""

    def translate(*words, stdin="", model=talker):
        raw = stdin if isinstance(stdin, bytes) else stdin.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        with pytest.raises(SystemExit) as ended:
            main(["translate", "--model", str(model), "--threads", "1", *words])
        return Answer(ended.value.code or 0, *capsys.readouterr())

    return translate


def lines(text):
    return text.split("\n")[:-1]


def test_texts_or_lines_become_lines(translate):
    typed = translate("三月", "四月二日", "--verbose", "--no-check-numbers")
    assert (typed.status, typed.err) == (0, "regard: engine: ctranslate2\n")
    typed = translate("三月", "四月二日")
    assert len(lines(typed.out)) == 2
    assert all(lines(typed.out))
    assert translate(stdin="三月\n四月二日\n").out == typed.out
    assert translate(stdin="三月\r\n四月二日").out.replace("\r", "") == typed.out
    assert translate(stdin="").out == ""


@pytest.mark.parametrize("words", [[], ["--sentences"]])
def test_blocks_of_code_in_a_document_stay_as_they_are(translate, words):
    code = b"```python\r\nx = 1  # \xe5\x9b\x9b\xe6\x9c\x88 \r\n\r\n\ty  \r\n```"
    found = translate(
        *words, stdin="三月\n\n".encode() + code + b"\n\n    z = 2  # three\n\n" + "四月".encode()
    )
    assert found.status == 0
    out = found.out.replace("\r", "")
    assert "\n\n" + code.decode().replace("\r", "") + "\n\n    z = 2  # three\n\n" in out
    assert "三月" not in out
    typed = translate("三月\n```\n三月  x\n```", *words)
    assert typed.out.endswith("\n```\n三月  x\n```\n")


def test_outputs_are_drawn_where_that_is_asked_for(translate):
    words = ("三月", "--sample", "--n-best", "3")
    drawn = {seed: translate(*words, "--seed", seed).out for seed in "123"}
    assert len(set(drawn.values())) == 3
    assert translate(*words, "--seed", "2").out == drawn["2"]
    assert all(found.count("\t") == 2 for found in drawn.values())
    nearly_greedy = translate("三月", "--sample", "--temperature", "0.001").out
    assert nearly_greedy == translate("三月", "--sample", "--top-k", "1", "--temperature", "9").out
    assert nearly_greedy == translate("三月", "--beam", "1", "--engine", "torch").out


@pytest.mark.parametrize("words", [("--temperature", "0.5"), ("--top-k", "3"), ("--seed", "2")])
def test_how_to_draw_is_refused_where_nothing_is_drawn(translate, words):
    refused = translate("三月", *words)
    assert (refused.status, refused.out) == (2, "")
    assert refused.err == f"regard: error[missing_option]: {words[0]} needs --sample\n"


def test_every_line_keeps_its_place(translate):
    found = translate(stdin=NASTY)
    assert found.status == 0
    out = lines(found.out)
    assert len(out) == len(NASTY.split("\n"))
    assert out[1:5] == ["", "   ", "😀", "\x00\x07\r"]
    assert out[0] == lines(translate("三月").out)[0]
    assert out[8] == lines(translate("五月").out)[0]
    assert "regard: standard input:8: too long for the model, so it was translated in" in found.err


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=8))
def test_there_are_as_many_lines_as_there_were(translate, texts):
    stdin = "\n".join(texts)
    expected = stdin.count("\n") + (not stdin.endswith("\n") and stdin != "")
    assert translate("--beam", "1", stdin=stdin).out.count("\n") == expected


def test_a_line_that_cannot_be_read_is_told_and_the_rest_goes_on(translate):
    stdin = "三月\n".encode() + b"ab\xff\n" + b"x" * 1_000_001 + "\n四月".encode()
    found = translate(stdin=stdin)
    assert found.status == 2
    assert lines(found.out) == [lines(translate("三月").out)[0], "", "", lines(translate("四月").out)[0]]
    first, second = found.err.splitlines()
    assert first.startswith("regard: standard input:2: byte 3 (0xff) is not UTF-8")
    assert second.startswith("regard: standard input:3: the line has a megabyte or more")
    objects = [json.loads(line) for line in lines(translate("--json", stdin=stdin).out)]
    assert ["error" in each for each in objects] == [False, True, True, False]


def test_of_many_such_lines_some_are_told_and_the_others_counted(translate):
    told = translate(stdin=b"\xff\n" * 25).err.splitlines()
    assert len(told) == 21
    assert told[-1] == "regard: 5 more like these"


def test_progress_is_shown_on_a_terminal_and_wiped_off(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    clock = iter(range(0, 100, 2))
    monkeypatch.setattr(reporting.time, "monotonic", lambda: next(clock))
    for stdout, expected in (("pipe", "\r30 lines, 15 a second\033[K\r\033[K"), ("terminal", "")):
        monkeypatch.setattr(sys, "stderr", shown := Terminal())
        monkeypatch.setattr(sys, "stdout", Terminal() if stdout == "terminal" else io.StringIO())
        watching = reporting.LineReporter(progress=True, engines=False)
        watching.advance(30)
        watching.close()
        assert shown.getvalue() == expected


def test_utf_16_is_refused(translate):
    found = translate(stdin="三月".encode("utf-16"))
    assert (found.status, found.out) == (2, "")
    assert "it looks like UTF-16" in found.err


def test_scores_and_alternatives_are_columns(translate):
    plain = translate("--n-best", "3", stdin="三月\n\n")
    best, *others = lines(plain.out)[0].split("\t")
    assert len(others) == 2
    assert lines(plain.out)[1] == ""
    columns = lines(translate("--n-best", "3", "--scores", stdin="三月\n").out)[0].split("\t")
    assert columns[1::2] == [best, *others]
    assert sorted(map(float, columns[::2]), reverse=True) == list(map(float, columns[::2]))


def test_json_tells_everything(translate):
    (line,) = lines(translate("三月", "--json", "--scores", "--n-best", "2").out)
    found = json.loads(line)
    assert found["text"] == lines(translate("三月").out)[0]
    assert (found["engine"], found["split"], found["missing"]) == ("ctranslate2", 1, [])
    assert sum(found["token_scores"]) == pytest.approx(found["log_prob"], abs=1e-4)
    assert len(found["alternatives"]) == 1


def test_a_glossary_a_prefix_and_sentences(translate, tmp_path):
    (tmp_path / "terms.tsv").write_text("月\tmoon\n", encoding="utf-8")
    found = translate("三月", "--glossary", str(tmp_path / "terms.tsv"), "--engine", "torch")
    assert "moon" in found.out.lower()
    (tmp_path / "terms.csv").write_text("月,moon|moons\n三,=\n", encoding="utf-8")
    assert "三" in translate("三月", "--glossary", str(tmp_path / "terms.csv")).out
    assert translate("三月", "--prefix", "May").out.startswith("May")
    assert translate("  - 三月", "--sentences").out == f"  - {translate('三月').out}"


def test_what_a_translation_lacks_of_a_glossary_is_said_with_its_number(translate, tmp_path):
    (tmp_path / "terms.tsv").write_text(f"三\t{'x' * 100}\n月\t{'y' * 100}\n", encoding="utf-8")
    found = translate("三月三", "--glossary", str(tmp_path / "terms.tsv"))
    assert f"lacks 2 occurrences of '{'x' * 100}', 1 occurrence of '{'y' * 100}'" in found.err


def test_a_glossary_line_without_a_translation_is_refused(translate, tmp_path):
    (tmp_path / "terms.tsv").write_text("月\tmoon\nUnicode\n", encoding="utf-8")
    found = translate("三月", "--glossary", str(tmp_path / "terms.tsv"))
    assert found.status == 2
    assert f"{tmp_path / 'terms.tsv'}:2: 'Unicode' has no translation" in found.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--engine", "tensorrt"], "there is no engine 'tensorrt'; there are auto, torch, ctranslate2"),
        (["--source", "de"], "the model translates from zh, not from de"),
        (["--source", "zh", "--target", "fr"], "the model translates into en, not into fr"),
        (["--glossary", "nowhere.tsv"], "nowhere.tsv: there is no such file"),
        (["--n-best", "0"], "--n-best 0 is less than 1"),
        (["--beam", "2", "--n-best", "3"], "--n-best 3 needs a --beam of at least 3"),
        (["--model", "nowhere"], "there is no such folder"),
    ],
)
def test_mistakes_are_answered(translate, words, problem):
    found = translate("三月", *words)
    assert found.status == 2
    assert problem in found.err
    assert "Traceback" not in found.err


def test_languages_may_be_named_in_other_words(translate):
    assert translate("三月", "--source", "zho", "--target", "EN").status == 0


# --- through pipes ------------------------------------------------------------------------------------------


def started(talker, *words, **pipes):
    command = [sys.executable, "-m", "regard", "translate", "--model", str(talker), "--threads", "1", *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, **pipes)


def test_a_line_is_answered_before_the_next_is_typed(talker):
    with started(talker, stdout=subprocess.PIPE) as program:
        for text in ("三月", "四月", "五月"):
            program.stdin.write(f"{text}\n".encode())
            program.stdin.flush()
            assert program.stdout.readline().strip()
        program.stdin.close()
        assert program.stdout.read() == b""
    assert program.returncode == 0


def test_a_reader_that_goes_away_gets_no_traceback(talker):
    reading, writing = os.pipe()
    os.close(reading)
    with started(talker, stdout=writing, stderr=subprocess.PIPE) as program:
        os.close(writing)
        assert program.communicate("三月\n".encode() * 100)[1] == b""
    assert program.returncode == 1


@pytest.mark.parametrize("words", [["三月"], ["--help"]])
def test_torch_is_not_imported(talker, words):
    words = ["translate", "--model", str(talker), *words]
    code = (
        "import sys\nfrom regard.cli import main\n"
        f"try: main({words})\n"
        "except SystemExit as end: print(end.code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *printed, ended = done.stdout.splitlines()
    assert printed
    assert ended == "0 False"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell how much memory")
def test_a_large_file_takes_no_more_memory_than_a_small_one(talker):
    small, large = peak(talker, 10_000), peak(talker, 200_000)
    assert large < small + 10_000  # KB; the file has 12 MB more


def peak(talker, n_lines):
    code = (
        "import sys\nfrom pathlib import Path\nfrom regard.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0], file=sys.stderr)"
    )
    # Without the second searches for changed numbers, whose own memory depends on the first lines.
    words = ["translate", "--model", str(talker), "--threads", "1", "--beam", "1", "--no-check-numbers"]
    stdin = "".join(f"{i}月\n" if i % 100 == 0 else f"{'*' * 60}\n" for i in range(n_lines))
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, input=stdin.encode(), capture_output=True, check=True)
    assert done.stdout.count(b"\n") == n_lines
    return int(done.stderr.split()[-1])


def test_lines_come_in_blocks_as_they_arrive():
    class Slow(io.RawIOBase):
        def __init__(self, chunks):
            self.chunks = iter(chunks)

        def read(self, _size=-1):
            return next(self.chunks, b"")

    long = b"x" * 400_000
    chunks = ["三\n四".encode()[:5], "三\n四".encode()[5:], b"\n\nlast", long, long, long, b"y\nz"]
    found = [line for block in read_arriving(Slow(chunks)) for line in block]
    assert [line.number for line in found] == [1, 2, 3, 4, 5]
    assert [line.text for line in found] == ["三", "四", "", "", "z"]
    assert [line.problem is None for line in found] == [True, True, True, False, True]


class Written(io.RawIOBase):
    """A pipe whose chunks arrive at once, except that the reader has to wait where there is None."""

    def __init__(self, *chunks):
        self.chunks, self.goes_on = iter(chunks), threading.Event()

    def read(self, _size=-1):
        chunk = next(self.chunks, b"")
        if chunk is None:
            self.goes_on.wait()
            chunk = next(self.chunks)
        return chunk


def test_the_first_block_of_a_document_is_its_opening_however_it_arrives(monkeypatch):
    monkeypatch.setattr(input_lines, "PAUSE", 60)
    first, *_ = read_arriving(Written(*(f"{i}\n".encode() for i in range(50))), opening=True)
    assert len(first) == 50
    chunk = b"a line of some words\n" * 1000
    first, *_ = read_arriving(Written(*[chunk] * 30), opening=True)
    assert OPENING <= sum(len(line.text) + 1 for line in first) < 30 * len(chunk)
    monkeypatch.setattr(input_lines, "PAUSE", 0.01)
    pipe = Written(b"1\n2\n", None, b"3\n", b"4\n")
    blocks = read_arriving(pipe, opening=True)
    assert [line.number for line in next(blocks)] == [1, 2], "a pause ends the opening"
    pipe.goes_on.set()
    assert [line.number for block in blocks for line in block] == [3, 4]


def test_words_are_aligned_when_asked_for(translate):
    found = json.loads(translate("三月四日", "--json", "--alignment").out)
    assert found["aligned_by"].startswith("heads 0.0, 0.1, 0.2 (layer.head), not measured")
    assert found["alignment"]
    for link in found["alignment"]:
        assert "三月四日"[link["source_start"] : link["source_end"]] == link["source"]
        assert found["text"][link["target_start"] : link["target_end"]] == link["target"]
    assert json.loads(translate("三月四日", "--json").out)["alignment"] == []
    refused = translate("三月四日", "--alignment")
    assert (refused.status, refused.err) == (2, "regard: error[missing_option]: --alignment needs --json\n")


def test_what_must_stay_stays(translate):
    assert "四月" not in translate("三月四月").out
    assert "四月" in translate("三月四月", "--keep", "四月", "--keep", "六月").out


def test_what_is_too_long_is_cut_or_refused_line_by_line(translate):
    stdin = "三月\n" + "三" * 700 + "\n五月\n"
    found = translate("--too-long", "error", stdin=stdin)
    assert found.status == 2
    out = lines(found.out)
    assert out[1] == ""
    assert [out[0], out[2]] == [lines(translate("三月").out)[0], lines(translate("五月").out)[0]]
    assert "standard input:2: " in found.err
    assert "tokens; the model reads at most 60" in found.err
    assert translate("--too-long", "split", stdin=stdin).status == 0
    wrong = translate("三月", "--too-long", "shrink")
    assert (wrong.status, "error[bad_option]: --too-long shrink" in wrong.err) == (2, True)
