"""`regard score`: a number for each pair."""

import json

import pytest

import regard
from regard.cli import main
from tests.cli.conftest import Answer

SOURCES, TARGETS = ["三月", "四月二日", "一千"], ["March", "2 April", ""]


@pytest.fixture
def score(talker, tmp_path, capsys):
    def score(*words, sources=SOURCES, targets=TARGETS):
        files = tmp_path / "pairs.zh", tmp_path / "pairs.en"
        for file, texts in zip(files, (sources, targets), strict=True):
            file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        with pytest.raises(SystemExit) as ended:
            main(["score", *map(str, files), "--model", str(talker), "--threads", "1", *words])
        return Answer(ended.value.code or 0, *capsys.readouterr())

    return score


def test_each_pair_has_its_log_probability(score, talker):
    expected = regard.load(talker, threads=1).score(SOURCES, TARGETS)
    found = score()
    assert found.status == 0
    assert list(map(float, found.out.split())) == pytest.approx([e.log_prob for e in expected], abs=1e-3)
    objects = [json.loads(line) for line in score("--json").out.splitlines()]
    assert [tuple(each["tokens"]) for each in objects] == [each.tokens for each in expected]
    assert [len(each["token_scores"]) for each in objects] == [len(each.tokens) + 1 for each in expected]


def test_a_pair_that_is_too_long_is_told_and_the_others_are_scored(score):
    long = "三" * 700
    found = score(sources=[*SOURCES, long, *SOURCES], targets=[*TARGETS, "x", *TARGETS])
    assert found.status == 2
    alone = score().out.split("\n")[:-1]
    assert found.out.split("\n")[:-1] == [*alone, "", *alone]
    assert "pairs.zh:4: pair 1: a text has" in found.err


def test_files_out_of_step_are_refused(score):
    found = score(targets=TARGETS[:2])
    assert found.status == 2
    assert "the file ends here" in found.err
