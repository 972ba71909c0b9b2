"""Recipes are configurations that exist, and are named on their page."""

import pytest

from regard.bundle.weights import empty_model
from regard.config import read_config
from tests.architecture.sources import ROOT

RECIPES = sorted((ROOT / "recipes").glob("*.toml"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_a_configuration_and_has_its_command_on_the_page(recipe):
    config = read_config(file=recipe)
    translates = config.task.name == "translate"
    assert not translates or None not in (config.task.source, config.task.target)
    page = ROOT / "docs" / ("recipes.md" if translates else "tasks.md")
    assert f"--config recipes/{recipe.name}" in page.read_text(encoding="utf-8")


def test_the_multi30k_model_is_a_small_one():
    model = empty_model(read_config(file=ROOT / "recipes" / "multi30k-en-de.toml").model)
    assert model.n_parameters == 9_921_536
