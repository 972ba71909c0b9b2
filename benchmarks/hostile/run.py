"""Runs a scene: a fresh server, quiet clients, the attack, some time to settle, the stop."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.hostile.heavy import OUTPUT, SENTENCE, TRACED
from benchmarks.hostile.report import Honesty, Liveness, Result
from benchmarks.hostile.scene import Attack, Scene, Tally, Target, run_attack
from benchmarks.hostile.server import Server, new_key
from benchmarks.hostile.watch import HonestClient, MemoryWatch, Probe, Worker, honest, probe

STOP_AFTER_S = 3.0
"""Seconds of load before SIGTERM."""
BEYOND_S = 60.0
"""Seconds after the drain until a server that does not stop is killed."""


@dataclass(frozen=True)
class Plan:
    """How scenes are run."""

    seconds: float
    settle: float
    quiet: float
    drain: float
    folder: Path
    """For logs and key files."""
    texts: tuple[str, ...]
    same_address: bool = False


class Expected:
    """What the quiet server answers to the texts: asked for once, by the first scene."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts, self._found = texts, list[str]()

    def from_server(self, port: int, key: str) -> list[str]:
        """The translations."""
        if not self._found:
            client = HonestClient(port, key)
            answers = [client.translate(text) for text in self._texts]
            assert all(isinstance(each, str) for each in answers), answers
            self._found = [str(each) for each in answers]
        return self._found


def run_scene(scene: Scene, plan: Plan, expected: Expected) -> Result:
    """All that a scene measures."""
    keys = _keys(scene, plan)
    file = plan.folder / f"{scene.name}.keys" if keys else None
    server = Server(plan.folder / f"{scene.name}.log", keys=file)
    try:
        return Scenario(scene, plan, server, keys).run(expected)
    finally:
        if server.lives:
            server.kill()


def _keys(scene: Scene, plan: Plan) -> dict[str, str]:
    """Keys of the honest clients and of an attacker, in a new file."""
    if not scene.keys:
        return {}
    file = plan.folder / f"{scene.name}.keys"
    file.unlink(missing_ok=True)
    return {name: new_key(file, name) for name in ("honest", "attacker")}


class Scenario:
    """A scene with its server."""

    def __init__(self, scene: Scene, plan: Plan, server: Server, keys: dict[str, str]) -> None:
        self._scene, self._plan, self._server = scene, plan, server
        self._key = keys.get("honest", "")
        n = 1 if plan.same_address else scene.addresses
        addresses = ("127.0.0.1",) if plan.same_address else tuple(f"127.0.0.{2 + i}" for i in range(n))
        self._target = Target(server.port, addresses, plan.texts, keys.get("attacker", ""))
        self._memory = MemoryWatch(server)
        self._tally = Tally()

    def run(self, expected: Expected) -> Result:
        """Run all parts."""
        scene, server = self._scene, self._server
        result = Result(scene.name, scene.about, self._plan.seconds, drain_s=self._plan.drain)
        known = expected.from_server(server.port, self._key)
        warm_up(server.port, self._key)
        if scene.trace:
            path = new_trace(HonestClient(server.port, self._key), source=TRACED, target=OUTPUT)
            self._target = replace(self._target, trace=path)
        if scene.attack is None:
            result.attacked = False
        else:
            self._attack(scene.attack, known, result)
        if server.lives:
            self._stop(result)
        else:
            result.crash = f"exit code {server.exit_code}"
        self._memory.close()
        result.log_bytes, tally = server.log_bytes, self._tally
        if self._memory.stopped:
            tally.notes[self._memory.stopped] += 1
        result.sent, result.broken, result.notes = dict(tally.sent), dict(tally.broken), dict(tally.notes)
        result.answers = {what: dict(outcomes) for what, outcomes in tally.answers.items()}
        seen = sum(n for outcome, n in result.outcomes().items() if outcome.startswith("500"))
        result.errors = max(result.errors, seen)
        return result

    def _attack(self, attack: Attack, known: list[str], result: Result) -> None:
        plan, server = self._plan, self._server
        arguments = (server.port, self._key, plan.texts, known)
        quiet, quiet_probe = begun(Worker(honest, *arguments), Worker(probe, server.port))
        time.sleep(plan.quiet)
        result.honest_quiet = Honesty.of(quiet.result())
        result.live_quiet = Liveness.of(quiet_probe.result())
        assert not result.honest_quiet.problems, result.honest_quiet
        result.before = self._size()

        honest_clients, probing = begun(Worker(honest, *arguments), Worker(probe, server.port))
        attackers = self._attackers(attack)
        started = time.monotonic()
        while time.monotonic() < started + plan.seconds and server.lives and not self._memory.stopped:
            time.sleep(0.1)
        result.seconds = time.monotonic() - started
        self._collect(attackers)
        ended = time.monotonic()
        result.honest = Honesty.of(honest_clients.result() or [])
        time.sleep(max(0.0, ended + plan.settle - time.monotonic()))
        probes: list[Probe] = probing.result() or []
        during = Liveness.of([each for each in probes if each.started < ended])
        overall = Liveness.of(probes)
        result.live = replace(overall, p99=during.p99)
        result.after, result.peak = self._size(), self._memory.peak
        result.errors = server.statuses()[500] if server.lives else 0

    def _stop(self, result: Result) -> None:
        attackers = []
        if self._scene.stop:
            attackers = self._attackers(self._scene.stop)
            time.sleep(STOP_AFTER_S)
        result.stopped_s = self._server.terminate(self._plan.drain + BEYOND_S)
        self._collect(attackers)
        code = self._server.exit_code
        if result.stopped_s is not None and code not in (0, -15, 143):
            result.crash = f"exit code {code} after SIGTERM"

    def _attackers(self, attack: Attack) -> list[Worker]:
        attackers = [Worker(run_attack, attack, self._target, i) for i in range(self._scene.processes)]
        self._memory.guard_against(attackers)
        return begun(*attackers)

    def _collect(self, attackers: Sequence[Worker]) -> None:
        for each in attackers:
            each.ask_to_stop()
        for each in attackers:
            found: Tally | None = each.result(30)
            if found is None:
                self._tally.broken["a process of attackers failed, and has counted nothing"] += 1
            else:
                self._tally.add(found)

    def _size(self) -> int:
        """Memory without the traces that are kept on purpose."""
        return self._server.memory() - self._server.kept_bytes() if self._server.lives else 0


def begun(*workers: Worker) -> list[Worker]:
    """Workers, once all of them work."""
    for each in workers:
        each.wait_until_begun()
    return list(workers)


def warm_up(port: int, key: str) -> None:
    """Have the server load what it loads late: what memory is compared with includes it."""
    client = HonestClient(port, key)
    client.post("/api/v1/translate", {"text": [SENTENCE] * 16, "beam": 16, "n_best": 16, "alignment": True})
    client.post("/translate", {"q": f"<p>{SENTENCE}</p>", "source": "zh", "target": "en", "format": "html"})
    trace = new_trace(client, source=SENTENCE)
    for view in ("walk?kind=cross&layer=1&head=0&query=1", "alignment", "influence?steps=4", "file"):
        client.get(f"{trace}/{view}")
    for path in ("/openapi.json", "/", "/api/v1/positions", "/api/v1/neighbours?text=a"):
        client.get(path)
    for options in (
        {"stream": True},
        {"sample": True},
        {"glossary": {"猫": "cat"}},
        {"beam": 1, "scores": True},
    ):
        client.post("/api/v1/translate", {"text": SENTENCE} | options)


def new_trace(client: HonestClient, **fields: str) -> str:
    """The path of a new trace."""
    status, content = client.post("/api/v1/traces", fields)
    assert status == 201, content
    return f"/api/v1/traces/{json.loads(content)['trace_id']}"
