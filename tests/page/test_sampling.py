"""What the page says is cut away before a token is drawn is what the engine never draws."""

import pytest
import torch

from regard.decode.sampling import Sampling

SETTINGS = [
    {},
    {"temperature": 0.5},
    {"temperature": 1.7},
    {"top_k": 5},
    {"top_k": 999},
    {"top_p": 0.6},
    {"min_p": 0.2},
    {"temperature": 0.7, "top_k": 9, "top_p": 0.8},  # of what top_k left
    {"temperature": 1.4, "top_k": 20, "top_p": 0.9, "min_p": 0.05},
]
DRAWS = 50_000


def drawn(log_probs, settings):
    """How often the engine draws each token, over numbers evenly spread from 0 to 1."""
    uniform = (torch.arange(DRAWS, dtype=torch.float64) + 0.5) / DRAWS
    found = Sampling(**settings).draw(log_probs.expand(DRAWS, -1), uniform)
    return torch.bincount(found, minlength=len(log_probs)) / DRAWS


def test_shares_are_those_that_the_engine_draws_by(node):
    torch.manual_seed(3)
    log_probs = torch.log_softmax(2 * torch.randn(47), dim=0)
    usual = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    told = [usual | settings for settings in SETTINGS]
    for each in told:
        each["heat"] = each.pop("temperature")
    probabilities = node("probabilities", log_probs.tolist(), told)
    for settings, found in zip(SETTINGS, probabilities, strict=True):
        assert found == pytest.approx(drawn(log_probs, settings).tolist(), abs=2 / DRAWS), settings


def test_at_temperature_0_the_likeliest_is_left(node):
    told = {"heat": 0, "top_k": 0, "top_p": 1, "min_p": 0}
    log_probs = torch.tensor([0.2, 0.5, 0.3]).log().tolist()
    assert node("probabilities", log_probs, [told]) == [[0, 1, 0]]
