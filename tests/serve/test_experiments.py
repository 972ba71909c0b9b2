"""Experiments over HTTP: the recorded results of all."""

from regard.experiments.registry import NAMES, find_experiment, recorded_results


def test_every_experiment_is_told_with_its_claim_and_verdict(server):
    found = server.get("/api/v1/experiments").json()["experiments"]
    assert found == recorded_results()
    assert {each["name"] for each in found} <= set(NAMES)
    for each in found:
        claim = find_experiment(each["name"]).claim
        assert each["claim"] == {"en": claim.en, "zh": claim.zh}
        assert each["verdict"]
        assert each["tables"]
