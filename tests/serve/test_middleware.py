"""What every request passes, keys, and what those who run a server ask."""

import json
import logging
import re

import pytest

from regard.errors import ConfigError
from regard.serve.http.keys import KeyRing, RateLimiter, new_key, read_keys
from regard.serve.http.limits import Limits
from regard.serve.routes.page import page_files, page_version
from tests.refusals import refused
from tests.serve.running import running


def test_a_name_that_is_not_ours_is_refused(server):
    for host in ("evil.example", "localhost.evil.example:80", ""):
        answer = server.http.get("/livez", headers={"Host": host})
        assert (answer.status_code, answer.json()["error"]["code"]) == (421, "bad_host")
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:80", "[::1]:8000", "192.168.1.7"):
        assert server.http.get("/livez", headers={"Host": host}).status_code == 200


def test_names_and_origins_are_let_in_by_name(registry):
    origin = {"Origin": "https://a.example"}
    with running(registry, hosts=["mt.example"], cors_origins=["https://a.example"]) as server:
        assert server.http.get("/livez", headers={"Host": "mt.example"}).status_code == 200
        answer = server.http.get("/livez", headers=origin)
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        assert "access-control-allow-credentials" not in answer.headers
        other = server.http.get("/livez", headers={"Origin": "https://b.example"})
        assert "access-control-allow-origin" not in other.headers


def test_cors_is_off_and_the_policy_is_strict(server):
    answer = server.http.get("/docs", headers={"Origin": "https://a.example"})
    assert "access-control-allow-origin" not in answer.headers
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "server" not in answer.headers


def test_the_page_is_served_from_the_package_and_nothing_else_is(server):
    name, file = next((name, file) for name, file in page_files().items() if name.endswith(".js"))
    answer = server.get(f"/page/{page_version()}/{name}")
    assert answer.content == file.content
    assert answer.headers["content-type"].startswith("text/javascript")
    again = server.http.get(f"/page/x/{name}", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    for wrong in ("__init__.py", "y/../../../loaded.py", "%2e%2e/loaded.py", "..%2f..%2fpyproject.toml", ""):
        assert server.get(f"/page/x/{wrong}").status_code == 404


def test_browsers_keep_the_files_of_this_version_of_the_page_and_no_others(server):
    start = server.get("/")
    assert "no-cache" in start.headers["cache-control"]
    assert f"/page/{page_version()}/joined.js" in start.text
    assert "immutable" in server.get(f"/page/{page_version()}/joined.js").headers["cache-control"]
    assert "no-cache" in server.get("/page/older/joined.js").headers["cache-control"]


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [
        ("gzip, deflate, br", True),
        ("br;q=1.0, GZIP;q=0.2", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip;q=0.0, *", False),
        ("br", False),
        ("", False),
    ],
)
def test_files_of_the_page_are_compressed_for_who_accepts_it(server, accepted, zipped):
    sent = {"Accept-Encoding": accepted}
    answer = server.http.get(f"/page/{page_version()}/joined.js", headers=sent)
    assert (answer.headers.get("content-encoding") == "gzip") == zipped
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.content == page_files()["joined.js"].content  # the client has decompressed it
    length = int(answer.headers["content-length"])
    assert length < len(answer.content) / 3 if zipped else length == len(answer.content)
    again = {"If-None-Match": answer.headers["etag"]}
    assert server.http.get("/page/x/joined.js", headers=sent | again).status_code == 304
    other = {"Accept-Encoding": "br" if zipped else "gzip"}
    assert server.http.get("/page/x/joined.js", headers=other | again).status_code == 200


def test_the_page_takes_one_script_whatever_its_modules_import(server):
    """What a browser requests before the first API call: the page, its style sheet, its script."""
    found = re.findall(r'(?:src|href)="(/[^"]+)"', server.get("/").text)
    assert [address.rpartition("/")[2] for address in found] == ["page.css", "joined.js"]
    script = server.get(found[1]).text
    assert not re.search(r"^(?:import|export)\b", script, re.MULTILINE)


def test_nothing_comes_from_elsewhere(server):
    """The page's parts, and the list of routes, name no other host."""
    documents = [file.content.decode() for file in page_files().values()] + [server.get("/docs").text]
    for document in documents:
        for scheme in ('src="http', "src='http", 'from "http', 'import("http', "@import", "cdn."):
            assert scheme not in document


@pytest.mark.parametrize("path", ["/", "/health", "/readyz", "/v1/models", "/page/x/page.js"])
def test_the_head_of_an_answer_is_that_of_the_answer(server, path):
    whole, head = server.get(path), server.http.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert head.headers["content-length"] == whole.headers["content-length"]
    assert server.http.head("/api/v1/translate").status_code == 405
    assert server.get("/livez").status_code == 200, "the connection is fit for the next"


def test_docs_list_the_routes(server):
    listed = server.get("/docs").text
    for path in server.get("/openapi.json").json()["paths"]:
        assert path in listed


def test_the_log_has_no_text(registry, caplog):
    with caplog.at_level(logging.INFO, "regard.serve"), running(registry) as server:
        server.post("/api/v1/translate", text="三月五日", model="zh-en")
        server.get("/api/v1/translate?text=三月五日")
    assert "POST /api/v1/translate 200" in caplog.text
    assert "三月" not in caplog.text
    assert "%E4" not in caplog.text


def test_metrics_have_bounded_labels(registry):
    with running(registry) as server:
        for i in range(5):
            server.get(f"/nothing/{i}")
            server.post("/api/v1/translate", text="三月", model=f"none-{i}")
        metrics = server.get("/metrics").text
    assert 'regard_requests_total{code="404",route="other"} 5.0' in metrics
    assert 'regard_requests_total{code="404",route="/api/v1/translate"} 5.0' in metrics
    assert "none-" not in metrics
    assert "regard_memory_bytes" in metrics


def test_ready_names_the_models(server):
    assert server.get("/livez").json() == {"status": "live"}
    assert server.get("/readyz").json() == {"status": "ready", "models": ["zh-en"]}


def test_keys_are_needed_where_there_are_keys(registry, tmp_path):
    secret = new_key(tmp_path / "keys", "one")
    with running(registry, keys=KeyRing(read_keys(tmp_path / "keys"))) as server:
        for path in ("/api/v1/models", "/api/v1/runs", "/v1/models"):
            nobody = server.get(path)
            assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, "Bearer")
            wrong = server.http.get(path, headers={"Authorization": "Bearer guess"})
            assert wrong.status_code == 403
            right = server.http.get(path, headers={"Authorization": f"Bearer {secret}"})
            assert right.status_code == 200
        for path in ("/livez", "/readyz", "/metrics", "/health", "/docs", "/languages"):
            assert server.get(path).status_code == 200


def test_a_key_may_ask_only_so_often(registry, tmp_path):
    secret = new_key(tmp_path / "keys", "one")
    ring = KeyRing(read_keys(tmp_path / "keys"))
    with running(registry, keys=ring, limits=Limits(requests_a_minute=3)) as server:
        headers = {"Authorization": f"Bearer {secret}"}
        codes = [server.http.get("/api/v1/models", headers=headers).status_code for _ in range(4)]
        assert codes == [200, 200, 200, 429]
        last = server.http.get("/v1/models", headers=headers)
        assert last.json()["error"]["type"] == "rate_limit_error"
        assert 1 <= int(last.headers["retry-after"]) <= 20


def test_rates_recover_with_time():
    now = 0.0
    rates = RateLimiter(clock=lambda: now)
    for _ in range(2):
        rates.take("a", 2)
    with refused("rate_limit") as caught:
        rates.take("a", 2)
    assert caught.value.retry_after == 30
    rates.take("b", 2)
    now = 30.0
    rates.take("a", 2)


def test_keys_are_kept_as_hashes(tmp_path):
    file = tmp_path / "keys"
    first, second = new_key(file, "one"), new_key(file, "two")
    assert first != second
    assert first not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    ring = KeyRing(read_keys(file))
    assert (ring.find(first).name, ring.find(second).name) == ("one", "two")
    assert ring.find("") is ring.find(first[:-1]) is None
    with refused("bad_key_name", "'one'"):
        new_key(file, "one")
    with refused("bad_key_name", "' '"):
        new_key(file, " ")


def test_every_bad_line_of_a_key_file_is_told(tmp_path):
    file = tmp_path / "keys"
    good = {"name": "a", "sha256": "0" * 64, "requests_a_minute": 5}
    bad = ["x", json.dumps({"name": "b"}), json.dumps({**good, "sha256": "Z"})]
    bad += [json.dumps({**good, "requests_a_minute": 0}), json.dumps({**good, "more": 1})]
    file.write_text("\n".join([json.dumps(good), "", *bad]))
    with pytest.raises(ConfigError) as error:
        read_keys(file)
    assert [problem.split(" ")[1].strip(":") for problem in error.value.problems] == ["3", "4", "5", "6", "7"]
    with refused("missing_file", "--new-key NAME"):
        read_keys(tmp_path / "none")
