"""Looking inside over HTTP, against the same traces made here."""

import time

import numpy as np
import pytest

from regard.loaded import load
from regard.look.export import document
from regard.look.trace.trace import Trace
from regard.serve.cache import BlobStore
from regard.serve.http.dependencies import AppState
from regard.serve.http.errors import client_gone
from regard.serve.http.limits import Limits
from regard.serve.http.metrics import Metrics
from regard.serve.models import ModelRegistry, ServedTranslator
from regard.serve.work.jobs import RequestJob
from regard.tasks.loaded.translator import LoadedTranslator
from tests.refusals import refused
from tests.serve.running import running

DTYPES = {"u8": "u1", "f16": "<f2", "f32": "<f4"}


@pytest.fixture(scope="module")
def model(run_folder):
    return load(run_folder)


@pytest.fixture(scope="module")
def trace(model, sources):
    return model.look(sources[0], beam_size=4)


@pytest.fixture(scope="module")
def made(server, sources):
    """A trace at the server."""
    answer = server.post("/api/v1/traces", source=sources[0], beam=4)
    assert answer.status_code == 201, answer.text
    return answer.json()


def matrix(answer):
    shape = [int(size) for size in answer.headers["x-shape"].split(",")]
    numbers = np.frombuffer(answer.content, DTYPES[answer.headers["x-dtype"]]).reshape(shape)
    return numbers * float(answer.headers["x-scale"])


def test_a_trace_is_described_as_everywhere_else(server, made, trace):
    about = server.get(f"/api/v1/traces/{made['trace_id']}").json()
    assert about == document.describe(trace)
    assert about.items() <= made.items()
    assert made["model"] == "zh-en"


@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_comes_as_bytes_one_head_or_all(server, made, trace, dtype):
    path = f"/api/v1/traces/{made['trace_id']}/attention"
    weights = trace.attention("cross", 0, 1)
    one = matrix(server.get(path, kind="cross", layer=0, head=1, dtype=dtype))
    assert np.allclose(one, weights, atol={"u8": 1 / 500, "f16": 1e-3, "f32": 1e-6}[dtype])
    every = matrix(server.get(path, kind="cross", layer=0, head="*", dtype=dtype))
    assert every.shape == (trace.config.n_heads, *weights.shape)
    assert np.allclose(every[1], weights, atol=1 / 255)


def test_scores_are_those_before_the_softmax(server, made, trace):
    path = f"/api/v1/traces/{made['trace_id']}/attention"
    found = matrix(server.get(path, kind="decoder", layer=0, head=1, form="scores", dtype="f32"))
    assert np.allclose(found, trace.scores("decoder", 0, 1), atol=1e-5)


def test_every_activation_has_an_address(server, made, trace):
    path = f"/api/v1/traces/{made['trace_id']}/activation"
    for address in ("input_embedding.embedded", "decoder.layers.0.multi_head_attention.q", "encoder.output"):
        found = matrix(server.get(path, address=address))
        assert found.shape == trace.arrays[address].shape
        assert np.allclose(found, trace.arrays[address], atol=1e-5)
    for address in ("decoder.layers.9.feed_forward.output", "said.ids"):
        answer = server.get(path, address=address)
        assert answer.status_code == 422
        assert answer.json()["error"]["param"] is None


def test_walk_steps_beam_and_alignment(server, made, trace, model):
    path = f"/api/v1/traces/{made['trace_id']}"
    walk = server.get(f"{path}/walk", kind="cross", layer=0, head=0, query=1).json()
    assert walk == document.walk(trace, "cross", 0, 0, 1)
    assert server.get(f"{path}/steps").json() == document.steps(trace)
    tree = server.get(f"{path}/beam").json()
    assert (tree["beam_size"], len(tree["nodes"])) == (4, len(trace.beam.nodes))
    aligned = server.get(f"{path}/alignment").json()
    heads = model.aligning_heads
    assert aligned["links"] == document.alignment(trace, heads.heads, heads.rows)["links"]
    assert aligned["measured"] is heads.measured


def test_activations_are_ablated_added_to_and_patched_from_a_stored_trace(server, made, model, sources):
    at = "encoder.layers.0.feed_forward.output"
    vector = np.linspace(-1, 1, model.bundle.config.d_model).tolist()
    lists = [
        [{"op": "ablate", "at": at, "by": "mean", "texts": list(sources[1:3])}],
        [{"op": "ablate", "at": at, "by": "resample", "texts": list(sources[1:3]), "seed": 4}],
        [{"op": "add", "at": "decoder.layers.0.add_and_norm.2.output", "values": [vector], "scale": 2}],
        [{"op": "patch", "at": at, "positions": [1], "trace": made["trace_id"]}],
    ]
    patched = model.look(sources[0], beam_size=4).arrays[at][1].tolist()
    same = [*lists[:3], [{"op": "patch", "at": at, "positions": [1], "values": [patched]}]]
    for sent, ours in zip(lists, same, strict=True):
        answer = server.post("/api/v1/traces", source=sources[1], beam=3, interventions=sent)
        assert answer.status_code == 201, answer.text
        told, expected = answer.json(), model.look(sources[1], beam_size=3, interventions=ours)
        assert [each["id"] for each in told["wanted"]] == list(expected.targets)
        log_probs = [each["log_prob"] for each in told["wanted"]]
        assert np.allclose(log_probs, expected.log_probs, atol=1e-3)
        assert "values" not in told["interventions"][0]
    found = server.post("/api/v1/ablate", source=sources[1], interventions=lists).json()
    assert len(found["items"]) == 4
    assert len({item["log_prob_of_intact"] for item in found["items"]}) == 4


@pytest.mark.parametrize(
    ("change", "status", "place"),
    [
        ({"by": "mean"}, 422, "interventions[0] (ablate): mean needs texts"),
        ({"at": "encoder.layers.0.ffn", "by": "zero"}, 422, "interventions[0] (ablate)"),
        ({"by": "mean", "texts": [str(i) for i in range(17)]}, 422, "16 texts"),
        ({"by": "mean", "texts": ["三月" * 2000]}, 413, "tokens"),
        ({"op": "patch", "trace": "nothing"}, 422, "interventions[0] (patch): There is no such trace"),
        ({"op": "add", "values": [[1.0]]}, 422, "values have 1"),
    ],
)
def test_an_intervention_that_cannot_be_is_refused(server, sources, change, status, place):
    usual = {"op": "ablate", "at": "encoder.layers.0.feed_forward.output"}
    answer = server.post("/api/v1/traces", source=sources[0], interventions=[usual | change])
    assert answer.status_code == status, answer.text
    assert place in answer.json()["error"]["message"]


def test_a_search_whose_numbers_are_infinite_is_refused(server, model, sources):
    at = "encoder.layers.0.feed_forward.output"
    width = model.look(sources[0]).arrays[at].shape[-1]
    change = {"op": "add", "at": at, "values": [[1e30] * width], "scale": 1e30}
    for path, changes in (("traces", [change]), ("ablate", [[change]])):
        answer = server.post(f"/api/v1/{path}", source=sources[0], interventions=changes)
        assert answer.status_code == 422, answer.text


def test_influence_by_one_method_and_by_all(server, made, trace, model):
    path = f"/api/v1/traces/{made['trace_id']}"
    told = server.get(f"{path}/influence", row=1, method="leave-one-out").json()
    assert np.allclose(told["values"], model.influence(trace, 1, method="leave-one-out"), atol=1e-4)
    assert told["convergence"] is None
    assert server.get(f"{path}/influence", method="guess").status_code == 422
    told, found = server.get(f"{path}/influence", row=1, steps=7).json(), model.influence(trace, 1, steps=7)
    assert told["convergence"]["steps"] == 7
    assert told["convergence"]["relative"] == pytest.approx(found.convergence.relative, abs=1e-3)
    assert np.sum(told["values"]) - told["convergence"]["change"] == pytest.approx(
        told["convergence"]["delta"], abs=1e-4
    )
    assert server.get(f"{path}/influence", steps=1).status_code == 422
    told, found = server.get(f"{path}/influences", row=1).json(), model.influences(trace, 1)
    assert list(told["methods"]) == list(found.values)
    assert told["convergence"] == pytest.approx(found.convergence.to_json(), abs=1e-3)
    for name, each in told["methods"].items():
        assert np.allclose(each["values"], found.values[name], atol=1e-4), name
        assert len(each["curve"]) == len(told["masked"]) == len(found.masked)
    assert np.shape(told["agreement"]) == found.agreement.shape
    assert server.get(f"{path}/influences", row=99).status_code == 422


def test_a_target_may_be_a_text_or_the_ids_of_a_beam_s_node(server, trace):
    given = server.post("/api/v1/traces", source=trace.inputs.text, target="the third").json()
    assert given["outputs"]["text"].strip().endswith("the third")
    assert server.get(f"/api/v1/traces/{given['trace_id']}/beam").status_code == 404
    node = trace.beam.nodes[0]
    forced = server.post("/api/v1/traces", source=trace.inputs.text, target=[node.token]).json()
    assert forced["wanted"][0]["id"] == node.token


def test_an_output_can_be_made_to_begin_another_way(server, trace):
    source = trace.inputs.text
    tree = trace.beam
    fallen = next(n for n in tree.nodes if n.fate == "pruned" and n.step == 1 and n.text != "</s>")
    prefix = list(tree.ids(fallen.id))
    forced = server.post("/api/v1/traces", source=source, prefix=prefix, beam=4).json()
    assert [each["id"] for each in forced["wanted"]][:2] == prefix
    assert len(forced["wanted"]) > 2
    alone = server.post(
        "/api/v1/traces", source=source, target=[each["id"] for each in forced["wanted"][:-1]]
    )
    assert alone.json()["wanted"] == forced["wanted"]
    both = server.post("/api/v1/traces", source=source, prefix=prefix, target="May")
    assert (both.status_code, both.json()["error"]["param"]) == (422, "prefix")
    assert server.post("/api/v1/traces", source=source, prefix=[10**6]).status_code == 422


def test_interventions_are_made_and_bad_ones_are_refused(server, sources):
    off = [{"op": "head-off", "kind": "cross", "layer": 0, "head": 1}]
    plain = server.post("/api/v1/traces", source=sources[0], target="the third").json()
    changed = server.post("/api/v1/traces", source=sources[0], target="the third", interventions=off).json()
    assert changed["interventions"] == off
    assert changed["wanted"][0]["log_prob"] != plain["wanted"][0]["log_prob"]
    wrong = [{"op": "head-off", "kind": "cross", "layer": 9, "head": 1}]
    answer = server.post("/api/v1/traces", source=sources[0], interventions=wrong)
    assert answer.status_code == 422
    assert "layer 9" in answer.json()["error"]["message"]


def test_ablation_tells_what_becomes_of_a_text(server, model, trace, sources):
    off = {"op": "head-off", "kind": "cross", "layer": 0, "head": 1}
    answer = server.post("/api/v1/ablate", source=sources[0], interventions=[[], [off]], effects=True).json()
    same, changed = answer["items"]
    searched = model.translate(sources[0], beam_size=4, check_numbers=False)
    assert same["text"] == answer["intact"]["text"] == searched.text
    assert same["log_prob_of_intact"] == pytest.approx(answer["intact"]["log_prob"], abs=1e-4)
    effects = model.head_effects(trace)
    assert np.allclose(answer["effects"]["cross"], effects["cross"], atol=1e-4)
    change = changed["log_prob_of_intact"] - answer["intact"]["log_prob"]
    assert change == pytest.approx(effects["cross"][0, 1], abs=1e-3)


def test_the_intact_model_is_asked_once_however_often_heads_are_switched(registry, sources, monkeypatch):
    looks, effects = [], []
    look, effects_of_heads = LoadedTranslator.look, LoadedTranslator.effects_of_heads

    def spied(self, source, target=None, **options):
        looks.append((target is None, len(options["interventions"])))
        return look(self, source, target, **options)

    def spied_effects(self, *given):
        effects.append(given)
        return effects_of_heads(self, *given)

    changed = LoadedTranslator.changed_output

    def spied_changes(self, source, intact, interventions, **options):
        looks.append((False, len(interventions)))
        return changed(self, source, intact, interventions, **options)

    monkeypatch.setattr(LoadedTranslator, "look", spied)
    monkeypatch.setattr(LoadedTranslator, "changed_output", spied_changes)
    monkeypatch.setattr(LoadedTranslator, "effects_of_heads", spied_effects)
    with running(registry) as server:

        def ask(source, *heads, **more):
            lists = [[{"op": "head-off", "kind": "cross", "layer": 0, "head": head}] for head in heads]
            return server.post("/api/v1/ablate", source=source, interventions=lists, **more).json()

        intact = ask(sources[0])["intact"]
        assert looks == [(True, 0)]
        for head in (0, 1):
            assert ask(sources[0], head)["intact"] == intact
        assert looks == [(True, 0), (False, 1), (False, 1)]
        made = server.post("/api/v1/traces", source=sources[1]).json()
        other = ask(sources[1])["intact"]
        assert other != intact
        assert other["text"] in made["outputs"]["text"]
        assert looks[3:] == [(True, 0)], "who looked at a text has it remembered"
        off = {"op": "head-off", "kind": "cross", "layer": 0, "head": 0}
        server.post("/api/v1/traces", source=sources[2], interventions=[off])
        ask(sources[2])
        assert looks[4:] == [(True, 1), (True, 0)], "but not what a changed model said"
        told = [ask(sources[0], effects=True)["effects"] for _ in range(2)]
        assert told[0] == told[1]
        assert len(effects) == 1
        given = ask(sources[0], 0, target=[5, 6])["items"][0]
        assert given.keys() == {"log_prob_of_intact"}, "what is to have been said is not searched for"


def test_neighbours_are_those_of_the_embedding(server, model, sources):
    told = server.get("/api/v1/neighbours", text=sources[0], n=3).json()
    found = model.neighbours(sources[0], 3)
    assert [each["piece"] for each in told["tokens"]] == list(found.pieces.values())
    for each in told["tokens"]:
        near = found.nearest[each["id"]]
        assert [other["id"] for other in each["nearest"]] == [other.id for other in near]
        assert [each["x"], each["y"]] == pytest.approx(found.places[each["id"]], abs=1e-5)
    assert server.get("/api/v1/neighbours", text="").status_code == 422
    assert server.get("/api/v1/neighbours", text="a " * 9999).status_code == 413


def test_positions_are_those_that_the_model_adds(server):
    found = matrix(server.get("/api/v1/positions", length=7))
    assert found.shape == (7, 48)
    assert np.allclose(found[3, :2], [np.sin(3), np.cos(3)], atol=1e-6)
    assert server.get("/api/v1/positions", length=0).status_code == 422


def test_what_is_not_there_is_refused(server, made):
    path = f"/api/v1/traces/{made['trace_id']}"
    for wrong in ({"layer": 9, "head": 0}, {"layer": 0, "head": 99}, {"layer": 0, "head": "x"}):
        assert server.get(f"{path}/attention", kind="cross", **wrong).status_code == 422
    assert server.get(f"{path}/attention", kind="sideways", layer=0, head=0).status_code == 422
    assert server.get("/api/v1/traces/../../etc/passwd").status_code == 404
    dropped = server.post("/api/v1/traces", source="三月").json()["trace_id"]
    assert server.http.delete(f"/api/v1/traces/{dropped}").status_code == 204
    assert server.get(f"/api/v1/traces/{dropped}").status_code == 404
    assert server.http.delete(f"/api/v1/traces/{dropped}").status_code == 404


def test_looking_has_limits(registry):
    limits = Limits(trace_tokens=6, interventions=2, traces_bytes=1000, beam=4)
    with running(registry, limits=limits) as small:
        long = small.post("/api/v1/traces", source="三月五日四月六日七月八日")
        assert (long.status_code, long.json()["error"]["param"]) == (413, "source")
        wide = small.post("/api/v1/traces", source="三月", beam=5)
        assert (wide.status_code, wide.json()["error"]["param"]) == (422, "beam")
        many = small.post("/api/v1/ablate", source="三月", interventions=[[{"op": "no-scale"}]] * 3)
        assert (many.status_code, many.json()["error"]["param"]) == (422, "interventions")
        heavy = small.post("/api/v1/traces", source="三月", target="May")
        assert heavy.status_code == 413
        assert "bytes" in heavy.json()["error"]["message"]


def test_traces_that_nobody_looks_at_go(trace):
    now = 0.0
    block = trace.to_bytes()
    assert trace.nbytes < len(block) < trace.nbytes + 100_000
    traces = BlobStore("trace", 3 * len(block), 10.0, clock=lambda: now)
    first, second = (traces.add("m", block).id for _ in range(2))
    now = 8.0
    traces.get(second)
    now = 15.0
    assert Trace.from_bytes(traces.get(second).content) == trace
    with refused("not_found", "trace"):
        traces.get(first)
    kept = [traces.add("m", block).id for _ in range(3)]
    with refused("not_found", "trace"):
        traces.get(second)  # there was no room for a fourth
    assert traces.get(kept[0])
    assert traces.nbytes == 3 * len(block)


def test_whoever_opens_the_page_finds_the_weights_read(run_folder):
    model = load(run_folder)
    served = ServedTranslator("zh-en", run_folder, model, Metrics())
    registry = ModelRegistry([served])
    with running(registry) as server:
        server.get("/api/v1/models")
        assert served._aligner is None, "who only asks for translations needs no torch"
        assert server.get("/").status_code == 200
        for _ in range(600):
            if served._aligner is not None:
                break
            time.sleep(0.1)
        assert served._aligner is not None
    registry.close()


def test_a_look_that_was_cancelled_ends_between_two_steps(registry, model):
    inspector = AppState(registry, Metrics()).inspector
    job, trace = RequestJob("a"), model.look("三月五日")
    steps = []

    def work():
        while True:
            steps.append(model.influence(trace, 0, method="leave-one-out"))
            if len(steps) == 2:
                job.cancel(client_gone())

    with refused("client_gone"):
        inspector.look(next(iter(registry)), job, work)
    assert len(steps) == 2
