"""The sliced loss against `F.cross_entropy` on the whole matrix of logits, and against plain loops."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard import loss as loss_module
from regard.errors import ShapeError
from regard.loss import is_most_probable, label_smoothed_cross_entropy
from tests.parity import loops
from tests.parity.tolerances import assert_close

N, D, V = 13, 5, 17
SMOOTHINGS = [0.0, 0.1, 0.37]


def randn(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape).to(dtype).requires_grad_()


@pytest.fixture(params=[None, 1, 3 * V, 5 * V + 2, N * V], ids=lambda n: f"slice of {n}")
def _in_slices(request, monkeypatch):
    """All tokens at once, one at a time, in slices that leave a rest, and in slices that leave none."""
    if request.param is not None:
        monkeypatch.setattr(loss_module, "CPU_SLICE", request.param)


def reference(states, weight, bias, targets, counted, smoothing) -> tuple[Tensor, Tensor, int]:
    """Smoothed loss, likelihood and hits, from the logits that ours never holds."""
    logits = F.linear(states, weight, bias)
    mask = torch.ones(N) if counted is None else counted
    smoothed, nll = (
        (F.cross_entropy(logits, targets, reduction="none", label_smoothing=share) * mask).sum()
        for share in (smoothing, 0.0)
    )
    return smoothed, nll, int(((logits.argmax(dim=-1) == targets) * mask).sum())


@pytest.mark.usefixtures("_in_slices")
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("some_do_not_count", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_value_and_every_gradient_are_those_of_cross_entropy(smoothing, biased, some_do_not_count, dtype):
    states, weight = randn(N, D, dtype=dtype), randn(V, D, dtype=dtype)
    bias = randn(V, dtype=dtype) if biased else None
    targets = torch.randint(V, (N,))
    counted = torch.rand(N) < 0.6 if some_do_not_count else None
    loss = label_smoothed_cross_entropy(states, weight, targets, smoothing, bias_V=bias, counted_N=counted)
    smoothed, nll, correct = reference(states, weight, bias, targets, counted, smoothing)
    assert_close(loss.smoothed, smoothed)
    assert_close(loss.nll, nll)
    assert loss.correct.item() == correct
    inputs = [x for x in (states, weight, bias) if x is not None]
    ours, theirs = (torch.autograd.grad(7 * value / N, inputs) for value in (loss.smoothed, smoothed))
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("some_do_not_count", [True, False])
def test_the_form_that_gets_compiled_has_the_same_value_and_gradients(monkeypatch, some_do_not_count):
    states, weight, bias, targets = randn(N, D), randn(V, D), randn(V), torch.randint(V, (N,))
    counted = torch.rand(N) < 0.6 if some_do_not_count else None

    def run() -> tuple[Tensor, ...]:
        loss = label_smoothed_cross_entropy(states, weight, targets, 0.1, bias_V=bias, counted_N=counted)
        return *loss, *torch.autograd.grad(loss.smoothed, (states, weight, bias))

    plain = run()
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    monkeypatch.setattr(loss_module, "_gradient", None)
    for one, other in zip(run(), plain, strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("wanted", [(True, False, False), (False, True, False), (False, False, True)])
def test_each_gradient_comes_alone_too(wanted):
    inputs = [randn(N, D), randn(V, D), randn(V)]
    targets = torch.randint(V, (N,))

    def gradients(inputs: list[Tensor]) -> tuple[Tensor, ...]:
        states, weight, bias = inputs
        loss = label_smoothed_cross_entropy(states, weight, targets, 0.1, bias_V=bias).smoothed
        return torch.autograd.grad(loss, [x for x in inputs if x.requires_grad])

    together = [g for g, want in zip(gradients(inputs), wanted, strict=True) if want]
    alone = gradients([x if want else x.detach() for x, want in zip(inputs, wanted, strict=True)])
    assert_close(alone[0], together[0])


def test_without_gradients_the_value_is_the_same():
    states, weight, targets = randn(N, D), randn(V, D), torch.randint(V, (N,))
    learning = label_smoothed_cross_entropy(states, weight, targets, 0.1)
    with torch.no_grad():
        looking = label_smoothed_cross_entropy(states, weight, targets, 0.1)
    assert not looking.smoothed.requires_grad
    for one, other in zip(looking, learning, strict=True):
        assert torch.equal(one, other)


def test_it_is_the_sum_that_the_loops_give():
    states, weight, targets = randn(N, D), randn(V, D), torch.randint(V, (N,))
    log_probs = (states @ weight.t()).log_softmax(dim=-1).detach().numpy()
    loss = label_smoothed_cross_entropy(states, weight, targets, 0.1)
    assert_close(loss.smoothed, loops.label_smoothed_cross_entropy(log_probs, targets.tolist(), 0.1))
    assert_close(loss.nll, loops.label_smoothed_cross_entropy(log_probs, targets.tolist(), 0.0))


@pytest.mark.usefixtures("_in_slices")
def test_gradients_in_float64_are_those_of_finite_differences():
    states, weight, bias = randn(N, D), randn(V, D), randn(V)
    targets, counted = torch.randint(V, (N,)), torch.rand(N) < 0.6

    def smoothed(states, weight, bias):
        return label_smoothed_cross_entropy(
            states, weight, targets, 0.1, bias_V=bias, counted_N=counted
        ).smoothed

    assert torch.autograd.gradcheck(smoothed, (states, weight, bias))


@pytest.mark.usefixtures("_in_slices")
@pytest.mark.parametrize("biased", [True, False])
def test_bfloat16_states_come_close_with_gradients_in_float32_for_float32_weights(biased):
    states, weight = randn(N, D, dtype=torch.bfloat16), randn(V, D, dtype=torch.float32)
    bias = randn(V, dtype=torch.float32) if biased else None
    targets = torch.randint(V, (N,))
    inputs = [x for x in (states, weight, bias) if x is not None]
    loss = label_smoothed_cross_entropy(states, weight, targets, 0.1, bias_V=bias)
    expected, *_ = reference(states.float(), weight, bias, targets, None, 0.1)
    assert loss.smoothed.dtype == torch.float32
    assert_close(loss.smoothed / N, expected / N, torch.bfloat16)
    ours, theirs = (torch.autograd.grad(value / N, inputs) for value in (loss.smoothed, expected))
    for one, other, x in zip(ours, theirs, inputs, strict=True):
        assert one.dtype == x.dtype
        assert_close(one, other, torch.bfloat16)


def test_logits_of_any_size_give_a_finite_loss_and_gradient():
    """The probability of a target may underflow; its logarithm may not be lost with it."""
    states = torch.tensor([[1.0], [-1.0], [1.0]], requires_grad=True)
    weight = torch.linspace(-3000.0, 3000.0, V)[:, None].requires_grad_()
    targets = torch.tensor([0, 0, V - 1])
    loss = label_smoothed_cross_entropy(states, weight, targets, 0.1)
    expected = F.cross_entropy(states @ weight.t(), targets, reduction="sum", label_smoothing=0.1)
    assert_close(loss.smoothed, expected)
    ours, theirs = (torch.autograd.grad(value, [states, weight]) for value in (loss.smoothed, expected))
    for one, other in zip(ours, theirs, strict=True):
        assert one.isfinite().all()
        assert_close(one, other)


def test_correct_counts_the_tokens_whose_target_is_the_likeliest():
    weight = torch.eye(V)
    states = torch.stack([weight[3], weight[5], weight[5], weight[16]])
    assert label_smoothed_cross_entropy(states, weight, torch.tensor([3, 5, 3, 0])).correct == 2
    counted = torch.tensor([False, True, True, True])
    loss = label_smoothed_cross_entropy(states, weight, torch.tensor([3, 5, 3, 0]), counted_N=counted)
    assert loss.correct == 1


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.usefixtures("_in_slices")
def test_a_tie_is_not_a_hit(monkeypatch, compiled, dtype):
    """Logits that are all alike predict nothing: their accuracy is 0, wherever the target is."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: compiled)
    weight, targets = torch.eye(V), torch.arange(N)
    alike = torch.ones(N, V, dtype=dtype)
    assert label_smoothed_cross_entropy(alike, weight, targets).correct == 0
    assert label_smoothed_cross_entropy(0 * alike, weight, targets, 0.1).correct == 0
    two_alike = alike.scatter(1, torch.stack([targets, targets + 1], dim=1), 3.0)
    assert label_smoothed_cross_entropy(two_alike, weight, targets).correct == 0
    above = alike.scatter(1, targets[:, None], 1 + torch.finfo(dtype).eps)
    assert label_smoothed_cross_entropy(above, weight, targets).correct == N
    assert is_most_probable(above, targets).all()
    assert not is_most_probable(two_alike, targets).any()


def test_with_one_class_the_target_is_always_the_most_probable():
    states, weight = torch.randn(N, D), torch.randn(1, D)
    assert label_smoothed_cross_entropy(states, weight, torch.zeros(N, dtype=torch.long)).correct == N


def test_likelihood_and_hits_carry_no_gradient():
    loss = label_smoothed_cross_entropy(randn(N, D), randn(V, D), torch.randint(V, (N,)), 0.1)
    assert loss.smoothed.requires_grad
    assert not loss.nll.requires_grad
    assert not loss.correct.requires_grad


def test_smoothing_costs_the_entropy_of_the_smoothed_targets_at_the_least():
    """Section 5.4: no model gets below the entropy of what it is asked for, and this one gets there."""
    share, targets = 0.1, torch.randint(V, (N,))
    wanted = torch.full((N, V), share / V, dtype=torch.float64)
    wanted[torch.arange(N), targets] += 1 - share
    loss = label_smoothed_cross_entropy(wanted.log().requires_grad_(), torch.eye(V).double(), targets, share)
    assert_close(loss.smoothed, -(wanted * wanted.log()).sum())


class TestBadInput:
    states, weight, targets = torch.zeros(N, D), torch.zeros(V, D), torch.zeros(N, dtype=torch.int64)

    def refused(self, argument: str, expected: str, got: str, *arguments, **options) -> None:
        with pytest.raises(ShapeError) as caught:
            label_smoothed_cross_entropy(*arguments, **options)
        assert caught.value.argument == argument
        assert expected in str(caught.value.expected)
        assert got in str(caught.value.got)

    def test_targets_of_another_length(self):
        self.refused("targets_N", f"{N}", "11", self.states, self.weight, self.targets[:11])

    def test_targets_in_rows(self):
        self.refused("targets_N", f"{N}", "(13, 1)", self.states, self.weight, self.targets[:, None])

    @pytest.mark.parametrize("wrong", [-1, -100, V, V + 2])
    def test_a_target_outside_the_vocabulary(self, wrong):
        targets = self.targets.clone()
        targets[7] = wrong
        self.refused("targets_N", f"0 to {V - 1}", str(wrong), self.states, self.weight, targets)

    def test_counted_of_another_length(self):
        counted = torch.ones(11, dtype=torch.bool)
        arguments = (self.states, self.weight, self.targets)
        self.refused("counted_N", f"{N}", "11", *arguments, counted_N=counted)

    @pytest.mark.parametrize("share", [-0.1, 1.0, 2.0])
    def test_a_smoothing_that_is_no_share(self, share):
        self.refused("smoothing", "0", str(share), self.states, self.weight, self.targets, share)

    def test_states_of_another_width_than_the_weights(self):
        self.refused("states_ND", f"{D}", "7", torch.zeros(N, 7), self.weight, self.targets)

    def test_states_that_are_not_packed(self):
        self.refused("states_ND", f"{D}", "(2, 3, 5)", torch.zeros(2, 3, D), self.weight, self.targets[:2])

    def test_a_bias_of_another_size_than_the_vocabulary(self):
        arguments = (self.states, self.weight, self.targets)
        self.refused("bias_V", f"{V}", "11", *arguments, bias_V=torch.zeros(11))

    def test_no_tokens_at_all(self):
        self.refused("states_ND", "one", "0", self.states[:0], self.weight, self.targets[:0])
