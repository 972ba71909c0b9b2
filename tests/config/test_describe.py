import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from regard.config import SECTIONS, descriptions, settings, to_toml
from regard.config.run import RunConfig

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


@pytest.mark.parametrize("section", SECTIONS.values())
def test_every_setting_says_what_it_means_in_one_sentence(section):
    texts = descriptions(section)
    assert list(texts) == [field.name for field in fields(section)]
    for name, text in texts.items():
        assert re.fullmatch(r"[A-Z].*\.", text), f"{name}: {text}"
        assert "|" not in text, f"{name}: a bar would end the cell of the reference table"


def test_settings_have_dotted_names():
    assert settings()["model.n_heads"] == "Parallel attention heads, the paper's h (3.2.2)."


def test_sections_are_the_parts_of_a_run():
    assert {field.name: type(getattr(RunConfig(), field.name)) for field in fields(RunConfig)} == SECTIONS


def test_the_reference_page_is_made_from_the_settings():
    # In a process of its own: other tests register choices, which the page would list.
    code = "from regard.config import reference; print(reference(), end='')"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert PAGE.read_text(encoding="utf-8") == made.stdout, "run `make docs`"


def test_descriptions_become_comments():
    text = to_toml(RunConfig(), described=True)
    assert "# Parallel attention heads, the paper's h (3.2.2).\nn_heads = 8\n" in text
    assert "#" not in to_toml(RunConfig())
    assert max(map(len, text.splitlines())) <= 110
