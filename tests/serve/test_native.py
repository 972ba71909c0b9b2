"""`/api/v1` over HTTP, against the same model without a server."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

import regard
from regard import bundled
from tests.serve.running import serving


def events(response):
    """The events of an answer, as (name, data)."""
    blocks = [block for block in response.text.split("\n\n") if block and not block.startswith(":")]
    pairs = [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]
    return [(pair.get("event"), json.loads(pair["data"])) for pair in pairs]


def test_models_tell_what_they_are(server, run_folder):
    (about,) = server.get("/api/v1/models").json()["models"]
    assert about["id"] == "zh-en"
    assert (about["task"], about["run"]) == ("translate", True)
    assert about["directions"] == [{"source": "zh", "target": "en"}]
    assert about["config"]["d_model"] == 48
    assert about["limits"]["items"] == 256
    assert server.get("/api/v1/models/zh-en").json() == about
    assert str(run_folder) not in json.dumps(about)
    assert server.get("/api/v1/languages").json()["languages"] == [
        {"code": "zh", "name": "Chinese", "name_zh": "中文", "targets": ["en"]}
    ]


def test_a_text_gives_one_item_and_a_list_as_many(server, offline, sources):
    one = server.post("/api/v1/translate", text=sources[0]).json()
    assert [item["text"] for item in one["items"]] == [offline.translate(sources[0]).text]
    many = server.post("/api/v1/translate", text=sources[:20]).json()
    assert [item["text"] for item in many["items"]] == [each.text for each in offline.translate(sources[:20])]
    assert many["model"] == "zh-en"
    assert many["usage"]["characters"] == sum(map(len, sources[:20]))


def test_options_reach_the_model(server, offline, sources):
    asked = {"n_best": 3, "beam": 5, "length_penalty": 0.0, "scores": True}
    (item,) = server.post("/api/v1/translate", text=sources[1], **asked).json()["items"]
    alone = offline.translate(sources[1], n_best=3, beam_size=5, length_penalty=0.0, token_scores=True)
    assert [each["text"] for each in item["hypotheses"]] == [
        alone.text,
        *(each.text for each in alone.alternatives),
    ]
    assert item["score"] == pytest.approx(alone.score, abs=1e-3)
    assert item["token_scores"] == pytest.approx(list(alone.token_scores), abs=1e-3)
    assert item["tokens"] == list(alone.tokens)


def test_what_ctranslate2_cannot_do_torch_does(server):
    asked = {"text": "三月五日", "glossary": {"月": "moon"}, "n_best": 2}
    (item,) = server.post("/api/v1/translate", **asked).json()["items"]
    assert item["engine"] == "torch"
    assert "moon" in item["text"].lower()
    assert item["missing"] == []
    asked = {"text": "三月三", "glossary": {"三": f"{'x' * 100}|{'y' * 100}"}}
    (item,) = server.post("/api/v1/translate", **asked).json()["items"]
    assert item["missing"] == ["x" * 100] * 2
    drawn = [
        server.post("/api/v1/translate", text="三月五日", sample=True, seed=5).json()["items"][0]["text"]
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1]


def test_words_are_linked_where_that_is_asked_for(server, run_folder, sources):
    texts = sources[:7]
    items = server.post("/api/v1/translate", text=texts, alignment=True).json()["items"]
    alone = regard.load(run_folder, engine="ctranslate2", quantisation="float32").translate(
        texts, alignment=True
    )
    for item, result in zip(items, alone, strict=True):
        assert item["aligned_by"] == result.aligned_by
        assert [(link["source"], link["target"]) for link in item["alignment"]] == [
            (link.source, link.target) for link in result.alignment
        ]
    assert any(item["alignment"] for item in items)
    assert "alignment" not in server.post("/api/v1/translate", text=texts[0]).json()["items"][0]


def test_a_document_keeps_its_layout(server):
    page = "# 一月\n\n  - 三月五日。四月。\n  - 五月\n"
    (item,) = server.post("/api/v1/translate", text=page).json()["items"]
    assert item["text"].startswith("# ")
    assert item["text"].count("\n  - ") == 2


def test_languages_choose_the_model_and_wrong_ones_are_refused(server):
    good = server.post("/api/v1/translate", text="三月", source="zh-CN", target="en").json()
    assert (good["items"][0]["source_lang"], good["items"][0]["target_lang"]) == ("zh", "en")
    wrong = server.post("/api/v1/translate", text="三月", source="zh", target="fr")
    assert wrong.status_code == 422
    assert wrong.json()["error"]["param"] == "target"
    assert "zh → en" in wrong.json()["error"]["message"]


def test_auto_finds_the_language_of_each_text(server, offline):
    texts = ["三月五日", "the fifth of March", "12:30"]
    items = server.post("/api/v1/translate", text=texts, source="auto", target="en").json()["items"]
    assert [item["source_lang"] for item in items] == ["zh", "en", None]
    assert items[0]["text"] == offline.translate("三月五日").text
    assert [item["text"] for item in items[1:]] == texts[1:]
    unclear = server.post("/api/v1/translate", text="ᏣᎳᎩ", source="auto", target="en")
    assert unclear.status_code == 422
    assert unclear.json()["error"]["param"] == "source"


def test_a_stream_is_the_greedy_translation_piece_by_piece(server, offline, sources):
    texts = sources[:2]
    found = events(server.post("/api/v1/translate", text=texts, stream=True, check_numbers=False))
    assert found[0][0] == "start"
    assert found[-1][0] == "done"
    for i, text in enumerate(texts):
        wanted = list(offline.stream(text, check_numbers=False))
        assert len(wanted) > 1
        pieces = [data["text"] for name, data in found if name == "token" and data["i"] == i]
        assert pieces == wanted
        (item,) = [data for name, data in found if name == "item" and data["i"] == i]
        assert (item["text"], item["unfinished"], item["numbers"]) == ("".join(wanted), False, [])


def test_a_stream_with_a_beam_is_revised_where_the_search_finds_another(server, offline, sources):
    texts = [*sources[:3], "零点零" * 4, "三百零五月"]
    more = {"beam": 4, "stream": True, "check_numbers": False}
    found = events(server.post("/api/v1/translate", text=texts, **more))
    wanted = [each.text for each in offline.translate(texts, beam_size=4, check_numbers=False)]
    greedy = ["".join(offline.stream(text, check_numbers=False)) for text in texts]
    assert [data["text"] for name, data in found if name == "item"] == wanted
    revised = {data["i"]: data["text"] for name, data in found if name == "revise"}
    assert revised == {i: text for i, text in enumerate(wanted) if text != greedy[i]}
    assert revised, "a search that never finds another shows nothing here"


def test_changed_numbers_are_corrected_or_listed():
    with serving([bundled.folder("zh-en")]) as both:
        texts = ["中国有14亿人。", "比赛1月6日上午8点30分举行。"]
        right, lost = both.post("/api/v1/translate", text=texts).json()["items"]
        assert (right["text"], right["numbers"]) == ("China has 1.4 billion people.", [])
        (change,) = lost["numbers"]
        wanted = {"source": "1月6日", "source_start": 2, "source_end": 6, "source_value": "01-06"}
        wanted |= {"target": "", "target_start": None, "target_end": None, "target_value": ""}
        assert change == wanted
        found = events(both.post("/api/v1/translate", text=texts, stream=True))
        assert [data["numbers"] for name, data in found if name == "item"] == [[], [wanted]]
        plain = both.post("/api/v1/translate", text=texts[0], check_numbers=False).json()["items"][0]
        assert (plain["text"], plain["numbers"]) == ("China has 14 billion people.", [])


def test_a_stream_that_is_asked_for_by_header(server):
    body = {"text": "三月"}
    answer = server.http.post("/api/v1/translate", json=body, headers={"Accept": "text/event-stream"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert server.post("/api/v1/translate", text="三月", stream=True, n_best=2).status_code == 422


def test_scores_are_those_of_the_model(server, offline, sources):
    answer = server.post("/api/v1/score", source=sources[:3], target=["the third", "May", "one"]).json()
    alone = offline.score(sources[:3], ["the third", "May", "one"])
    assert [item["log_prob"] for item in answer["items"]] == pytest.approx(
        [each.log_prob for each in alone], abs=1e-3
    )
    assert answer["items"][0]["tokens"] == list(alone[0].tokens)
    uneven = server.post("/api/v1/score", source=["a", "b"], target="c")
    assert uneven.status_code == 422


def test_tokens_go_there_and_back(server, offline):
    (item,) = server.post("/api/v1/tokenize", text="三月五日").json()["items"]
    assert item["ids"] == offline.subwords.encode_one("三月五日").tolist()
    assert item["tokens"] == offline.subwords.pieces(item["ids"])
    assert server.post("/api/v1/detokenize", ids=item["ids"]).json()["text"] == "三月五日"
    beyond = server.post("/api/v1/detokenize", ids=[10**6])
    assert beyond.status_code == 422


def test_detection_says_null_where_it_does_not_know(server):
    answer = server.post("/api/v1/detect", text=["三月五日", "Hello"]).json()
    assert answer["items"][0]["language"] == "zh"
    assert answer["items"][1] is None  # nothing here reads English


@pytest.mark.parametrize(
    ("route", "body"), [("generate", {"prompt": "once"}), ("classify", {"text": "good"})]
)
def test_other_tasks_are_refused_by_name(server, route, body):
    answer = server.post(f"/api/v1/{route}", **body)
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "wrong_task"
    assert "'translate'" in answer.json()["error"]["message"]


@pytest.mark.slow
def test_many_clients_at_once_get_what_one_gets(server, offline, sources):
    expected = [each.text for each in offline.translate(sources[:200])]

    def ask(i):
        return server.post("/api/v1/translate", text=sources[i]).json()["items"][0]["text"]

    with ThreadPoolExecutor(32) as pool:
        assert list(pool.map(ask, range(200))) == expected


def test_a_model_whose_files_are_gone_is_no_fault_of_those_who_ask(run_folder, tmp_path, caplog):
    folder = shutil.copytree(run_folder, tmp_path / "zh-en")
    with serving([folder], engine="ctranslate2") as server:
        shutil.rmtree(folder)
        assert server.post("/api/v1/translate", text="三月").status_code == 200, "what was read goes on"
        for path, body in (
            ("/api/v1/traces", {"source": "三月"}),
            ("/api/v1/translate", {"text": "三月", "alignment": True}),
        ):
            answer = server.post(path, **body)
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (500, "model_unreadable")
            assert str(tmp_path) not in answer.text
    assert str(folder) in caplog.text, "who runs the server is told where"
