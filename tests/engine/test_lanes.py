"""Several threads that each bring a batch to one engine: lanes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from regard.engine.engines.protocol import Engines, Request, Search
from regard.loaded import load
from tests.engine.echo import Echo


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_lanes_find_what_the_whole_engine_finds(talkers, sources, engine):
    model = load(talkers[0], engine=engine, threads=2)
    search = Search(beam_size=3, extra_length=20)
    requests = [Request(ids=tuple(ids.tolist())) for ids in model.subwords.encode(sources[:20])]
    together = [each.hypotheses[0].ids for each in model.engines.decode(requests, search)]

    def in_a_lane(part):
        return [each.hypotheses[0].ids for each in model.engines.lane().decode(part, search)]

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(in_a_lane, (requests[:9], requests[9:]))
    assert first + second == together


def test_an_engine_tells_how_much_it_runs_at_once(talkers):
    engine = load(talkers[0], engine="ctranslate2", threads=3).engines.first
    assert (engine.lanes, engine.lane().lanes) == (3, 1)
    torch = load(talkers[0], engine="torch").engines.first
    assert torch.batch_capacity(Search(beam_size=1)) == 4 * torch.batch_capacity(Search(beam_size=4))


def test_lanes_share_one_engine_which_is_loaded_once():
    loaded, begin = [], threading.Barrier(2)

    def loader():
        loaded.append(Echo())
        return loaded[-1]

    engines = Engines([loader])

    def first(_):
        begin.wait()
        return engines.lane().first

    with ThreadPoolExecutor(2) as pool:
        lanes = list(pool.map(first, range(2)))
    assert len(loaded) == 1
    assert all(lane is loaded[0] for lane in lanes)
