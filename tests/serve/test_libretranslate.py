"""LibreTranslate's own client, pointed at us, and the shapes that it does not look at."""

from html import escape

import pytest
from libretranslatepy import LibreTranslateAPI

from regard.serve.http.keys import KeyRing, new_key, read_keys
from tests.serve.running import running


@pytest.fixture(scope="module")
def client(server):
    return LibreTranslateAPI(server.url)


def test_its_client_translates(client, offline):
    assert client.translate("三月五日", "zh", "en") == offline.translate("三月五日").text


def test_its_client_detects_and_lists_languages(client):
    assert client.detect("三月五日") == [{"confidence": 100.0, "language": "zh"}]
    assert client.languages() == [{"code": "zh", "name": "Chinese", "targets": ["en"]}]


def test_its_client_shows_its_key(registry, tmp_path, offline):
    secret = new_key(tmp_path / "keys", "one")
    with running(registry, keys=KeyRing(read_keys(tmp_path / "keys"))) as server:
        known = LibreTranslateAPI(server.url, secret)
        assert known.translate("三月", "zh", "en") == offline.translate("三月").text
        nobody = server.post("/translate", q="三月", source="zh", target="en")
        assert (nobody.status_code, list(nobody.json())) == (401, ["error"])
        wrong = server.post("/translate", q="三月", source="zh", target="en", api_key="guess")
        assert wrong.status_code == 403
        assert server.get("/frontend/settings").json()["keyRequired"] is True


def test_a_list_gives_lists(server, offline, sources):
    answer = server.post("/translate", q=sources[:5], source="zh", target="en", alternatives=2).json()
    alone = offline.translate(sources[:5], n_best=3)
    assert answer["translatedText"] == [each.text for each in alone]
    assert answer["alternatives"] == [[one.text for one in each.alternatives] for each in alone]
    assert "detectedLanguage" not in answer
    one = server.post("/translate", q=sources[0], source="zh", target="en", alternatives=2).json()
    assert (one["translatedText"], one["alternatives"]) == (
        answer["translatedText"][0],
        answer["alternatives"][0],
    )


def test_a_form_is_as_good_as_json(server, offline):
    form = {"q": ["三月", "五月"], "source": "zh", "target": "en", "format": "text"}
    answer = server.http.post("/translate", data=form).json()
    assert answer["translatedText"] == [each.text for each in offline.translate(form["q"])]


def test_a_form_may_be_sent_as_curl_sends_it_letters_not_escaped(server, offline):
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    body = "q=三月+五日&source=zh&target=en".encode()
    answer = server.http.post("/translate", content=body, headers=kind).json()
    assert answer == {"translatedText": offline.translate("三月 五日").text}
    refused = server.http.post("/translate", content=b"q=\xff&source=zh&target=en", headers=kind)
    assert (refused.status_code, list(refused.json())) == (400, ["error"])


def test_auto_tells_the_language_of_each(server):
    asked = {"q": ["三月五日", "the fifth of May"], "source": "auto", "target": "en"}
    answer = server.post("/translate", **asked).json()
    assert answer["detectedLanguage"][0] == {"confidence": 100, "language": "zh"}
    assert answer["detectedLanguage"][1]["language"] == "en"
    assert answer["translatedText"][1] == "the fifth of May"


def test_html_keeps_its_tags_and_a_paragraph_is_one_text(server, offline):
    page = '<p class="a>b">三月五日 &amp;\n <b>五月</b></p><script>三 < 四</script><p>六月</p><!-- 六月 -->'
    answer = server.post("/translate", q=page, source="zh", target="en", format="html").json()
    text = answer["translatedText"]
    first, second = (
        escape(offline.translate(each).text, quote=False) for each in ("三月五日 & 五月", "六月")
    )
    assert [text.count(tag) for tag in ("<b>", "</b>")] == [1, 1]
    assert text.replace("<b>", "").replace("</b>", "") == (
        f'<p class="a>b">{first}</p><script>三 < 四</script><p>{second}</p><!-- 六月 -->'
    )
    both = server.post("/translate", q=[page, "<br>"], source="auto", target="en", format="html").json()
    assert both["translatedText"] == [text, "<br>"]


def test_what_else_a_page_of_it_asks(server):
    settings = server.get("/frontend/settings").json()
    assert (settings["charLimit"], settings["batchLimit"]) == (100_000, 256)
    assert settings["language"]["target"] == {"code": "en", "name": "English"}
    assert server.get("/health").json() == {"status": "ok"}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"q": "三月"},
        {"q": "三月", "source": "zh", "target": "en", "format": "docx"},
        {"q": "三月", "source": "xx", "target": "en"},
        {"q": {"a": 1}, "source": "zh", "target": "en"},
    ],
)
def test_what_it_refuses_it_refuses_in_its_own_shape(server, body):
    answer = server.post("/translate", **body)
    assert answer.status_code == 400
    assert isinstance(answer.json()["error"], str)
    other = server.http.post("/translate", content=b"\xff\xfe", headers={"Content-Type": "application/json"})
    assert (other.status_code, list(other.json())) == (400, ["error"])


def test_suggestions_are_refused_in_words(server):
    assert "/translate" in server.post("/suggest").json()["error"]
