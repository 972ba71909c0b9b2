"""Who may use the server: not the pages of other sites, and nobody without a key."""

import pytest

from regard.serve.http.app import create_app
from regard.serve.http.dependencies import AppState, is_public
from regard.serve.http.keys import KeyRing, RateLimiter, new_key, read_keys, revoke_key
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from tests.refusals import refused
from tests.serve.running import running
from tests.serve.sockets import connected, read_all

JSON = {"Content-Type": "application/json"}


WORK = [
    ("POST", "/translate"),
    ("POST", "/api/v1/translate"),
    ("GET", "/api/v1/models"),
    ("GET", "/v1/models"),
]


@pytest.mark.parametrize(("method", "path"), WORK)
def test_pages_of_other_sites_may_not_use_the_server(server, method, path):
    def status(**headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return server.http.request(method, path, json={}, headers=named).status_code

    own = f"http://127.0.0.1:{server.port}"
    accepted = (200, 400, 422)
    assert status() in accepted
    assert status(Origin=own) in accepted
    assert status(Origin=own, Sec_Fetch_Site="same-origin") in accepted
    assert status(Sec_Fetch_Site="none") in accepted
    # Behind a proxy that changes the Host header, the browser still knows.
    assert status(Origin="https://mt.example", Sec_Fetch_Site="same-origin") in accepted
    for foreign in ("https://evil.example", "null", "http://127.0.0.1:1", "http://localhost"):
        assert status(Origin=foreign) == 403
    for site in ("cross-site", "same-site"):
        assert status(Sec_Fetch_Site=site) == 403
        assert status(Sec_Fetch_Site=site, Origin=own) == 403


def test_other_sites_may_link_to_the_page(server):
    for path in ("/", "/docs", "/livez"):
        answer = server.http.get(path, headers={"Sec-Fetch-Site": "cross-site"})
        assert answer.status_code == 200


def test_an_allowed_origin_may_use_the_server(registry):
    with running(registry, cors_origins=["https://a.example"]) as server:
        headers = {"Origin": "https://a.example", "Sec-Fetch-Site": "cross-site"}
        assert server.http.get("/api/v1/models", headers=headers).status_code == 200
        asked = {**headers, "Access-Control-Request-Method": "POST"}
        assert server.http.options("/api/v1/translate", headers=asked).status_code == 200
        other = {**headers, "Origin": "https://b.example"}
        assert server.http.get("/api/v1/models", headers=other).status_code == 403


def test_a_request_has_one_host(bare):
    def status(head):
        with connected(bare) as client:
            client.sendall(head.encode() + b"\r\nConnection: close\r\n\r\n")
            return int(read_all(client).split()[1])

    assert status("GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: evil.example") == 400
    assert status("GET http://evil.example/livez HTTP/1.1\r\nHost: localhost") in (404, 421)
    assert status("GET http://localhost/livez HTTP/1.1\r\nHost: evil.example") == 421


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data"]
)
def test_only_routes_that_read_forms_take_them(server, kind):
    headers = {"Content-Type": kind} if kind else {}
    body = b'{"text": "x", "q": "x", "source": "zh", "target": "en"}'
    answer = server.http.post("/api/v1/translate", content=body, headers=headers)
    assert answer.status_code == 415
    if kind in ("text/plain", ""):
        assert server.http.post("/translate", content=body, headers=headers).status_code == 415


def test_every_route_that_does_work_needs_a_key(registry, tmp_path):
    new_key(tmp_path / "keys", "one")
    state = AppState(registry, Metrics(), keys=KeyRing.of_file(tmp_path / "keys"))
    app = create_app(state)
    work = {path for path in [*app._app.openapi()["paths"], "/suggest"] if not is_public(path)}
    assert {path.split("/")[1] for path in work} == {
        "api", "v1", "translate", "translate_file", "detect", "predict", "suggest",
    }  # fmt: skip
    with running(registry, keys=state.keys) as server:
        for path in work:
            filled = path.replace("{", "").replace("}", "")
            for method in ("GET", "POST"):
                status = server.http.request(method, filled, headers=JSON, content="{}").status_code
                assert status in ((401, 405) if path.count("/") == 1 else (401,)), path


def test_bodies_without_a_key_have_their_own_budget(registry, tmp_path):
    secret = new_key(tmp_path / "keys", "one")
    ring = KeyRing.of_file(tmp_path / "keys")
    with running(registry, keys=ring, limits=Limits(bytes_without_key=4000)) as server:
        body = {"q": "月" * 900, "source": "zh", "target": "en", "api_key": secret}
        assert server.post("/translate", **body).status_code == 429
        assert server.post("/translate", **{**body, "q": "月"}).status_code == 200
        header = {"Authorization": f"Bearer {secret}"}
        assert server.http.post("/translate", json=body, headers=header).status_code == 200


def test_guesses_of_a_key_are_limited(registry, tmp_path):
    secret = new_key(tmp_path / "keys", "one")
    ring = KeyRing.of_file(tmp_path / "keys")
    with running(registry, keys=ring, limits=Limits(wrong_keys_a_minute=3)) as server:

        def status(key):
            return server.http.get("/v1/models", headers={"Authorization": f"Bearer {key}"}).status_code

        assert [status("guess") for _ in range(5)] == [403, 403, 403, 429, 429]
        assert status(secret) == 200


def test_keys_follow_the_file(tmp_path, caplog):
    file, now = tmp_path / "keys", 0.0
    first = new_key(file, "one")
    ring = KeyRing(read_keys(file), file, clock=lambda: now)
    second = new_key(file, "two")
    assert ring.find(second) is None, "the file is not read for every request"
    now = 1.0
    assert ring.find(second).name == "two"
    revoke_key(file, "one")
    now = 2.0
    assert ring.find(first) is None
    file.write_text("no key")
    now = 3.0
    assert ring.find(second).name == "two", "the old keys stay while the file is damaged"
    file.unlink()
    now = 4.0
    assert ring.find(second).name == "two"
    ring.used(ring.find(second), "10.0.0.7")
    ring.used(ring.find(second), "10.0.0.7")
    ring.close()
    said = [record.getMessage() for record in caplog.records]
    for line in (
        "key 'one': accepted",
        "key 'two': accepted",
        "key 'one': revoked",
        "key 'two': first used from 10.0.0.7",
        "key 'two': 2 requests",
    ):
        assert said.count(line) == 1
    assert first not in caplog.text
    assert second not in caplog.text
    with refused("bad_key_file"):
        file.write_text("no key")
        revoke_key(file, "two")


def test_a_key_that_is_not_there_cannot_be_revoked(tmp_path):
    new_key(tmp_path / "keys", "one")
    with refused("bad_key_name", "there are one"):
        revoke_key(tmp_path / "keys", "two")


def test_a_rate_limiter_forgets(monkeypatch):
    monkeypatch.setattr("regard.serve.http.keys.BUCKETS", 2)
    rates = RateLimiter(clock=lambda: 0.0)
    for name in ("a", "b", "c"):
        rates.take(name, 1)
    with refused("rate_limit"):
        rates.take("c", 1)
    rates.take("a", 1)
