"""Files as LibreTranslate's clients send them, and their translations as they fetch them."""

import pytest

from regard.serve.http.keys import KeyRing, new_key, read_keys
from regard.serve.http.limits import Limits
from regard.serve.routes.libretranslate import translated_name
from tests.refusals import refused
from tests.serve.running import running


def send(server, name, content, **fields):
    asked = {"source": "zh", "target": "en"} | fields
    return server.http.post("/translate_file", files={"file": (name, content)}, data=asked)


def fetched(server, answer):
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"translatedFileUrl"}
    assert answer.json()["translatedFileUrl"].startswith(f"{server.url}/download_file/")
    return server.http.get(answer.json()["translatedFileUrl"])


def test_a_text_is_translated_with_its_layout(server, offline):
    text = "三月五日\n\n  四月\n"
    found = fetched(server, send(server, "dates.txt", text.encode("utf-8-sig")))
    assert found.text == offline.translate(text).text
    assert found.headers["content-disposition"] == "attachment; filename*=UTF-8''dates_en.txt"
    assert found.headers["content-type"] == "text/plain; charset=utf-8"


def test_a_page_keeps_its_tags(server, offline):
    found = fetched(server, send(server, "a.HTML", "<p class=x>三月<b>五日</b></p>".encode(), source="auto"))
    assert found.text.count("<b>") == found.text.count("</b>") == 1
    whole = f"<p class=x>{offline.translate('三月五日').text}</p>"
    assert found.text.replace("<b>", "").replace("</b>", "") == whole
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in found.headers["content-security-policy"]


def test_the_settings_say_which_files_are_taken(server):
    told = server.get("/frontend/settings").json()
    assert told["filesTranslation"]
    assert told["supportedFilesFormat"] == [".txt", ".html", ".htm"]


@pytest.mark.parametrize(
    ("name", "content", "fields", "problem"),
    [
        ("dates.pdf", b"x", {}, ".txt, .html, .htm"),
        ("", b"x", {}, "no file"),
        ("dates.txt", b"\xff\xfe", {}, "byte 1"),
        ("dates.txt", b"x", {"target": ""}, "target"),
        ("dates.txt", b"x", {"target": "fr"}, "translates"),
    ],
)
def test_what_cannot_be_translated_is_refused(server, name, content, fields, problem):
    answer = send(server, name, content, **fields)
    assert answer.status_code == 400
    assert problem in answer.json()["error"]


def test_a_request_without_a_file_is_refused(server):
    for form in ({"data": {"file": "x", "source": "zh", "target": "en"}}, {"content": b"\x00"}):
        answer = server.http.post("/translate_file", **form)
        assert answer.status_code == (415 if "content" in form else 400), answer.text
        assert set(answer.json()) == {"error"}


def test_limits_hold_and_files_are_let_go_of(registry):
    with running(registry, limits=Limits(characters=50, files_bytes=60)) as small:
        answer = send(small, "long.txt", ("三" * 51).encode())
        assert answer.status_code == 413
        assert "50 characters" in answer.json()["error"]
        first = send(small, "a.txt", b"\n" * 40).json()["translatedFileUrl"]
        assert small.http.get(first).content == b"\n" * 40
        second = send(small, "b.txt", b"\n" * 40).json()["translatedFileUrl"]
        gone = small.http.get(first)  # there was no room for both
        assert (gone.status_code, set(gone.json())) == (404, {"error"})
        assert small.http.get(second).status_code == 200


def test_a_key_may_be_a_field(registry, tmp_path):
    secret = new_key(tmp_path / "keys", "one")
    with running(registry, keys=KeyRing(read_keys(tmp_path / "keys"))) as closed:
        assert send(closed, "a.txt", b"\n").status_code == 401
        assert fetched(closed, send(closed, "a.txt", b"\n", api_key=secret)).content == b"\n"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd.txt", "passwd_en.txt"),
        ("C:\\Users\\me\\三月.html", "三月_en.html"),
        ('a"; filename=x\r\n.txt', "a_filename_x_en.txt"),
        (".txt", "file_en.txt"),
    ],
)
def test_a_name_is_only_shown(name, shown):
    assert translated_name(name, "en") == shown


def test_a_name_of_another_kind_is_refused():
    with refused("bad_value", ".txt"):
        translated_name("a.exe", "en")
