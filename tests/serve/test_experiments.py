"""Experiments over HTTP: every one of them, as it was seen."""

from regard.experiments.registry import NAMES, find
from regard.experiments.shelf import seen


def test_every_experiment_is_told_with_its_claim_and_verdict(server):
    found = server.get("/api/v1/experiments").json()["experiments"]
    assert found == seen()
    assert {each["name"] for each in found} <= set(NAMES)
    for each in found:
        assert each["claim"] == {"en": find(each["name"]).claim.en, "zh": find(each["name"]).claim.zh}
        assert each["verdict"]
        assert each["tables"]
