"""`regard evaluate` as a user meets it."""

import gzip
import json
import subprocess
import sys

import pytest
from sacrebleu.metrics import BLEU

from regard.cli import main
from regard.loaded import load
from tests.tasks.translators import REFERENCES, SOURCES, subword_model, translator


@pytest.fixture(autouse=True)
def _conversions_are_kept_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def subwords():
    return subword_model()


@pytest.fixture
def evaluate(tmp_path, monkeypatch, capsys):
    """Type `regard evaluate` and some words in a folder with test.zh, test.en and half.en."""
    monkeypatch.chdir(tmp_path)
    texts = {
        "test.zh": SOURCES,
        "test.en": REFERENCES,
        "half.en": [line[: len(line) // 2] for line in REFERENCES],
    }
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")

    def evaluate(*words):
        with pytest.raises(SystemExit) as ended:
            main(["evaluate", *map(str, words)])
        return ended.value.code or 0, *capsys.readouterr()

    return evaluate


def test_a_file_of_translations_gets_the_scores_that_sacrebleu_gives_it(evaluate):
    status, out, err = evaluate("test.zh", "test.en", "--outputs", "half.en")
    bleu = BLEU().corpus_score([line[: len(line) // 2] for line in REFERENCES], [REFERENCES])
    assert (status, err) == (0, "")
    assert f"half.en\n  BLEU {bleu.score:.2f}  μ = " in out
    assert "exact matches: 0.0%" in out
    assert "Against" not in out


def test_models_are_run_and_compared_with_the_first(evaluate, tmp_path, subwords):
    one = translator(tmp_path / "one", subwords)
    other = translator(tmp_path / "other", subwords, seed=2)
    words = ("--model", one, "--model", other, "--outputs", "half.en", "--engine", "torch", "--beam", 2)
    status, out, _ = evaluate("test.zh", "test.en", *words, "--json")
    (line,) = out.splitlines()
    told = json.loads(line)
    assert (status, told["language"], told["n_lines"]) == (0, "en", len(REFERENCES))
    how = "(torch, float32, beam 2, length penalty 0.4)"
    assert [system["name"] for system in told["systems"]] == [f"{one} {how}", f"{other} {how}", "half.en"]
    made = load(other, engine="torch").translate_lines(SOURCES, beam_size=2).lines
    bleu, *_ = told["systems"][1]["measures"]
    assert bleu["score"] == pytest.approx(BLEU().corpus_score(made, [REFERENCES]).score)
    assert 0 < bleu["p_value"] <= 1


def test_packed_files_are_read(evaluate, tmp_path):
    text = (tmp_path / "half.en").read_bytes()
    (tmp_path / "half.en.gz").write_bytes(gzip.compress(text))
    _, packed, _ = evaluate("test.zh", "test.en", "--outputs", "half.en.gz")
    _, plain, _ = evaluate("test.zh", "test.en", "--outputs", "half.en")
    assert packed.replace(".gz", "") == plain


def test_the_language_comes_from_the_flag_the_name_or_the_model(evaluate, tmp_path, subwords):
    model = translator(tmp_path / "model", subwords)
    (tmp_path / "reference").write_text((tmp_path / "test.en").read_text())

    def told(*words):
        found = json.loads(evaluate("test.zh", *words, "--json")[1])
        return found["language"], found["systems"][0]["measures"][0]["signature"], found["notes"]

    assert told("test.en", "--outputs", "half.en")[0] == "en"
    assert told("reference", "--model", model)[0] == "en"
    language, signature, (note,) = told("reference", "--outputs", "half.en")
    assert (language, "tok:13a" in signature, "--target" in note) == (None, True, True)
    language, signature, (note,) = told("test.en", "--outputs", "half.en", "--target", "jpn")
    assert (language, "tok:char" in signature, "Japanese" in note) == ("ja", True, True)
    language, signature, (note,) = told("test.en", "--model", model, "--target", "zh")
    assert (language, "tok:zh" in signature, "trained to write en" in note) == ("zh", True, True)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["rows.tsv"], "name a model, as in `regard evaluate RUN FILE`"),
        (["runs/nowhere", "test.zh", "test.en"], "there is no such folder"),
        (["test.zh", "test.en", "--outputs", "half.en", "--outputs", "half.en"], "half.en: named twice"),
        (["test.zh", "test.en", "--outputs", "half.em"], "did you mean half.en?"),
        (
            ["test.zh", "test.en", "--outputs", "half.en", "--engine", "ctranslate"],
            "did you mean ctranslate2?",
        ),
        (["test.zh", "test.en", "--outputs", "short.en"], "short.en:22: the file ends here, while"),
        (["empty.zh", "empty.zh", "--outputs", "empty.zh"], "empty.zh: has no lines"),
        (["test.zh", "test.en", "--outputs", "long.en"], "test.zh:1: line of a megabyte"),
        (["test.zh", "test.en", "--model", "nowhere"], "there is no such folder"),
    ],
)
def test_what_is_wrong_is_told(evaluate, tmp_path, words, complaint):
    (tmp_path / "short.en").write_text("".join(line + "\n" for line in REFERENCES[:-1]))
    (tmp_path / "empty.zh").write_text("")
    (tmp_path / "long.en").write_text("a" * 2_000_000 + "\n" + "b\n" * (len(REFERENCES) - 1))
    status, out, err = evaluate(*words)
    assert (status, out) == (2, "")
    assert complaint in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("evaluate")
@pytest.mark.parametrize("words", [["--help"], ["model", "test.zh", "test.en", "--engine", "ctranslate2"]])
def test_torch_is_not_imported_for_help_or_for_ctranslate2(tmp_path, subwords, words):
    translator(tmp_path / "model", subwords)
    code = (
        "import sys\nfrom regard.cli import main\n"
        f"try: main(['evaluate', *{words}])\n"
        "except SystemExit as end: print(end.code, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1] == "0 False", done.stderr


def test_without_a_model_the_bundled_one_is_scored_and_by_default_in_float32(evaluate):
    status, out, err = evaluate("test.zh", "test.en", "--beam", 1, "--json")
    assert status == 0, err
    (name,) = [system["name"] for system in json.loads(out)["systems"]]
    assert name == "zh-en (torch, float32, beam 1, length penalty 1)"
    status, fast, _ = evaluate("test.zh", "test.en", "--engine", "ctranslate2", "--beam", 1)
    assert (status, "zh-en (ctranslate2, int8, beam 1, length penalty 1)" in fast) == (0, True)


def test_a_run_is_scored_by_its_best_model(evaluate, tmp_path, subwords):
    best = translator(tmp_path / "run" / "best", subwords)
    status, of_run, _ = evaluate("test.zh", "test.en", "--model", tmp_path / "run", "--engine", "torch")
    _, of_best, _ = evaluate("test.zh", "test.en", "--model", best, "--engine", "torch")
    assert (status, of_run) == (0, of_best.replace(str(best), str(tmp_path / "run")))
