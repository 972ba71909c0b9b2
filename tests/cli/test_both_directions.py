"""One model for both directions, from `regard train` on."""

import io
import json
import sys

import pytest

from regard.cli import main


@pytest.fixture
def regard(monkeypatch, capsys, tmp_path):
    """Type `regard` and some words in `tmp_path`."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))

    def regard(*words, stdin=""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as ended:
            main([*words])
        return ended.value.code or 0, *capsys.readouterr()

    return regard


@pytest.mark.usefixtures("files")
def test_a_model_of_both_directions_is_trained_asked_scored_and_evaluated(train, regard):
    trained = train("train.zh", "train.en", "--both-directions", "--out", "both")
    assert trained.status == 0, trained.err
    assert trained.out.index("zh-en: BLEU") < trained.out.index("en-zh: BLEU")

    texts = ["三月", "ᏣᎳᎩ", "", "March"]  # each for itself
    status, out, err = regard("translate", "--model", "both", "--json", *texts)
    assert status == 2
    assert "with --target" in err
    first, second, empty, last = map(json.loads, out.splitlines())
    assert second["error"].endswith("with --target")
    assert not {"error"} & {*first, *empty, *last}
    assert regard("translate", "--model", "both", "--target", "en", *texts)[0] == 0
    for wrong in (["--target", "fr"], ["--source", "zh", "--target", "zh"]):
        status, _, err = regard("translate", "--model", "both", *wrong, *texts)
        assert (status, "from zh into en and from en into zh, not" in err) == (2, True)

    lines = "三月\nJe ne sais pas où il est.\nMarch\n"
    status, out, err = regard("translate", "--model", "both", "--json", stdin=lines)
    assert (status, json.loads(out.splitlines()[1])["unexpected_language"]) == (0, "fr")
    assert "standard input:2: the text is in French" in err
    assert "--source CODE" in err
    assert regard("translate", "--model", "both", stdin=lines)[1].splitlines()[1] == lines.splitlines()[1]
    status, out, err = regard("translate", "--model", "both", "--source", "en", "--json", stdin=lines)
    assert ("French" in err, json.loads(out.splitlines()[1])["unexpected_language"]) == (False, "")
    assert json.loads(out.splitlines()[1])["engine"]

    looked = ["look", "Привет", "--model", "both", "--view", "lines", "--kind", "encoder"]
    assert regard(*looked)[0] == 2
    status, out, _ = regard(*looked, "--target", "zh")
    assert (status, "<2zh>" in out) == (0, True)

    likelier = [
        regard("score", "train.zh", "train.en", "--model", "both", *to) for to in ([], ["--target", "en"])
    ]
    assert likelier[0] == likelier[1]
    assert regard("score", "train.zh", "train.en", "--model", "both", "--target", "zh")[1] != likelier[0][1]

    into_english = regard("evaluate", "train.zh", "train.en", "--model", "both")
    assert "tok:13a" in into_english[1]
    into_chinese = regard("evaluate", "train.en", "train.zh", "--model", "both")
    assert "tok:zh" in into_chinese[1]
    assert "note: both" not in into_english[1] + into_chinese[1]


def test_evaluate_prints_the_score_of_the_test_in_training(train, files, regard, pairs):
    """Also for lines with links, which are copied, and for lines that are translated already, which stay."""
    held_out = [
        (f"{zh} https://example.org/{i}", f"{en} https://example.org/{i}")
        for i, (zh, en) in enumerate(pairs[:7])
    ]
    held_out += [("OK, fine.", "OK, fine."), *((f"{zh}。", f"{en} e\u0301") for zh, en in pairs[7:12])]
    for side, language in enumerate(("zh", "en")):
        text = "".join(pair[side] + "\n" for pair in held_out)
        (files / f"test.{language}").write_text(text, encoding="utf-8")
    words = ("train.zh", "train.en", "--test", "test.zh", "test.en", "--both-directions", "--out", "both")
    trained = train(*words)
    assert trained.status == 0, trained.err
    kept = json.loads((files / "both" / "scores.json").read_text())
    for source, target in (("zh", "en"), ("en", "zh")):
        status, out, err = regard("evaluate", "both", f"test.{source}", f"test.{target}", "--json")
        assert status == 0, err
        ((system),) = json.loads(out)["systems"]
        found = {measure["name"]: measure["score"] for measure in system["measures"]}
        assert found["BLEU"] == kept[f"{source}-{target}"]["bleu"]
        assert found["chrF2"] == kept[f"{source}-{target}"]["chrf"]
        assert "torch, float32" in system["name"]


@pytest.mark.usefixtures("files")
def test_a_document_goes_one_way_and_what_is_in_its_target_language_is_counted(train, regard):
    assert train("train.zh", "train.en", "--both-directions", "--out", "both").status == 0
    lines = "<p class='a long name'>三月</p>\nMay\n四月二日星期五\n\n12:30\n```\nMarch\n```\n五月\n"
    status, out, err = regard("translate", "both", stdin=lines)
    assert status == 0
    told = (
        "regard: translating from Chinese into English, detected from the first lines; --target CODE chooses"
    )
    first, *_, last = err.splitlines()
    assert (first, last) == (told, "regard: 1 line already in English, kept unchanged")
    forced = regard("translate", "both", "--target", "en", stdin=lines)
    assert (forced[0], forced[1], "detected" in forced[2]) == (0, out, False)
    written = out.splitlines()
    assert (written[1], written[5:8]) == ("May", ["```", "March", "```"])
    assert not {"三月", "四月二日星期五", "五月"} & set(written)
    typed = regard("translate", "both", *lines.splitlines()[:3])
    assert typed[1].splitlines()[1] != "May", "each text is a document of its own"
    assert "detected" not in typed[2]
    status, out, err = regard("translate", "both", stdin="12:30\n7 + 8\n")
    assert (status, "detected" in err) == (0, False), "nothing shows a direction"


@pytest.mark.usefixtures("files")
def test_what_starts_from_both_directions_keeps_its_tag_and_its_search(train, regard):
    penalty = ["--set", "decoding.length_penalty=0.9"]
    assert train("train.zh", "train.en", "--both-directions", "--out", "both", *penalty).status == 0
    for files, tag in ((["train.zh", "train.en"], "<2en>"), (["train.en", "train.zh"], "<2zh>")):
        further = train(*files, "--from", "both", "--out", f"into{tag}")
        assert further.status == 0, further.err
        assert f"has the token {tag}" in further.err
        assert "taken from the model to start from: decoding.length_penalty=0.9" in further.err
        looked = regard("look", "三月", "--model", f"into{tag}", "--view", "lines", "--kind", "encoder")
        assert (looked[0], tag in looked[1]) == (0, True)
        assert f"token {tag}" in train(*files, "--from", f"into{tag}", "--out", f"on{tag}").err

    otherwise = ["--set", "task.language_tag=false", "--set", "decoding.length_penalty=0.7"]
    bare = train("train.zh", "train.en", "--from", "both", "--out", "bare", *otherwise)
    assert bare.status == 0
    assert not any(words in bare.err for words in ("<2en>", "taken from the model"))
    assert "<2en>" not in regard("look", "三月", "--model", "bare", "--view", "lines", "--kind", "encoder")[1]
    elsewhere = train("train.zh", "train.en", "--from", "both", "--target", "fr", "--out", "elsewhere")
    assert (elsewhere.status, "<2" in elsewhere.err) == (0, False)
    refused = train(
        "train.zh", "train.en", "--from", "both", "--target", "fr", "--set", "task.language_tag=true"
    )
    assert refused.status == 2
    assert "error[missing_language_token]" in refused.err
    assert "no token for fr" in refused.err


@pytest.mark.usefixtures("files")
def test_a_reference_that_does_not_tell_its_language_needs_to_be_told(train, regard, tmp_path):
    assert train("train.zh", "train.en", "--set", "task.both_directions=true", "--out", "both").status == 0
    (tmp_path / "reference").write_text((tmp_path / "train.en").read_text())
    status, _, err = regard("evaluate", "train.zh", "reference", "--model", "both")
    assert (status, "error[unknown_language]" in err) == (2, True)
    assert regard("evaluate", "train.zh", "reference", "--model", "both", "--target", "en")[0] == 0
