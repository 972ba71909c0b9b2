"""Registries: built-in choices are known without torch, and users can add to them."""

import subprocess
import sys

import pytest

from regard import ConfigError, ModelConfig, read_config, registries, to_toml
from regard.config.registries import Registry
from tests.refusals import refused

REGISTRIES = ["positions", "similarities", "feed_forwards", "norms", "optimizers", "schedules"]


@pytest.mark.parametrize("name", REGISTRIES)
def test_every_built_in_choice_is_registered_by_the_module_that_is_named_for_it(name):
    registry = getattr(registries, name)
    for choice in registry.names:
        assert choice in registry
        assert registry[choice].__module__ == registry._builtin[choice]


def test_names_are_known_without_torch():
    script = """
import sys, regard
assert "t5-relative" in regard.registries.positions.names
regard.ModelConfig(positions="rotary", similarity="cosine")
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_registered_choice_is_a_value_of_the_setting(monkeypatch):
    class Mine:
        @staticmethod
        def problems(config):
            return [] if config.n_heads == 2 else ["mine needs 2 heads"]

    monkeypatch.setitem(registries.positions._chosen, "mine", None)  # removed after the test
    del registries.positions._chosen["mine"]
    assert registries.positions.register("mine")(Mine) is Mine
    config = read_config(settings=["model.positions=mine", "model.n_heads=2"])
    assert config.model.positions == "mine"
    assert 'positions = "mine"' in to_toml(config)
    assert registries.positions["mine"] is Mine
    with refused("bad_value", "mine needs 2 heads", error=ConfigError):
        ModelConfig(positions="mine")


def test_an_unknown_choice_says_what_to_import():
    with refused("unknown_choice", "model.positions", "mine", "import the module", error=ConfigError):
        ModelConfig(positions="mine")
    with refused("unknown_choice", "model.positions", "mine", error=ConfigError):
        read_config(settings=["model.positions=mine"])
    with refused("unknown_choice", "position", "'mine'", "rotary", error=ConfigError):
        registries.positions["mine"]


def test_a_name_is_given_once():
    registry = Registry("colour", {"red": "somewhere"})
    registry.register("blue")(int)
    registry.register("blue")(int)  # a module may be run twice, as in a notebook
    with refused("duplicate_choice", "'blue'"):
        registry.register("blue")(float)
    with refused("duplicate_choice", "'red'"):
        registry.register("red")(float)
    assert registry.names == ("red", "blue")
    assert repr(registry) == "Registry('colour': red, blue)"
