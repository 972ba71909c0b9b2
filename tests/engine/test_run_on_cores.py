"""Batches on threads of their own: in order, without gradients, and without a trace."""

import threading

import pytest
import torch

from regard.engine.engines.protocol import Request, Search
from regard.engine.engines.torch_engine import TorchEngine, cores, run_on_cores
from tests.model.small import small_model


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_jobs_run_on_several_threads_and_come_back_in_order():
    together = threading.Barrier(2, timeout=60)

    def work(job):
        together.wait()  # would break if the other job did not run meanwhile
        return job, torch.get_num_threads(), torch.is_inference_mode_enabled()

    assert run_on_cores(work, [7, 5], "cpu") == [(7, 1, True), (5, 1, True)]


@pytest.mark.usefixtures("two_threads")
def test_threads_that_come_later_have_as_many_as_before():
    run_on_cores(torch.ones, [1, 2], "cpu")
    counts = []
    later = threading.Thread(target=lambda: counts.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert (counts, torch.get_num_threads()) == ([2], 2)


@pytest.mark.usefixtures("two_threads")
def test_a_mistake_in_a_job_is_told():
    with pytest.raises(ZeroDivisionError):
        run_on_cores(lambda job: 1 // job, [1, 0], "cpu")


def test_only_a_cpu_has_cores_to_share_out():
    assert cores("cuda") == 1


def test_results_do_not_depend_on_the_number_of_threads():
    torch.manual_seed(1)
    engine = TorchEngine([small_model(dtype=torch.float32)], bos=1, eos=2, batch_tokens=30)
    requests = [Request(ids=tuple(range(3, 4 + i % 7))) for i in range(11)]
    before, found = torch.get_num_threads(), []
    for count in (1, 2):
        torch.set_num_threads(count)
        found.append(engine.decode(requests, Search(beam_size=2, extra_length=3)))
    torch.set_num_threads(before)
    assert [best.ids for (best,) in found[0]] == [best.ids for (best,) in found[1]]
