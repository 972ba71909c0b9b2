"""Descriptions of the settings, from their docstrings: help text, TOML comments, the reference page."""

import ast
import inspect
import json
import sys
from dataclasses import fields
from functools import cache
from itertools import pairwise
from textwrap import wrap
from types import NoneType
from typing import Any

from regard.config.checking import KIND_NAMES, Section, choices, kinds, types_of
from regard.config.presets import PRESETS, summary
from regard.config.run import SECTIONS, RunConfig


@cache
def descriptions(section: type[Section]) -> dict[str, str]:
    """The description of each setting of a section: the string after the field in the source.

    Python keeps no docstrings of fields, so the source is parsed.
    """
    tree = ast.parse(inspect.getsource(sys.modules[section.__module__]))
    body = next(
        node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == section.__name__
    )
    found = {}
    for field, text in pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                found[name] = " ".join(words.split())
    return found


def settings() -> dict[str, str]:
    """Every setting by its dotted name, with its description."""
    return {
        f"{name}.{field}": text
        for name, section in SECTIONS.items()
        for field, text in descriptions(section).items()
    }


def toml_value(kind: Any, value: Any) -> str:
    """A value of a field of type `kind`, as TOML. TOML has no null, so None becomes `"none"`."""
    if value is None:
        return '"none"'
    if isinstance(value, str):
        # JSON strings are TOML strings, except for one control character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    return repr(float(value)) if float in kinds(kind) else str(value)


def to_toml(config: RunConfig, *, described: bool = False) -> str:
    """The whole configuration as TOML, which `read_config` reads back to an equal value.

    Args:
        config: the configuration.
        described: whether to put the description of each setting above it.
    """
    return "\n".join(
        line
        for name, section in SECTIONS.items()
        for line in [f"[{name}]", *_section_lines(section, getattr(config, name), described), ""]
    ).removesuffix("\n")


def _section_lines(section: type[Section], values: Any, described: bool) -> list[str]:
    lines = []
    for field, kind in types_of(section).items():
        if described:
            lines += ["# " + line for line in wrap(descriptions(section)[field], 100)]
        lines.append(f"{field} = {toml_value(kind, getattr(values, field))}")
    return lines


HEADING = """\
# Configuration

`make docs` generates this page from the settings themselves; a test compares the two.

A configuration comes from three places, each overriding the one before: a preset (`--preset`, or a line
`preset = "small"` at the top of the file), a TOML file (`--config`), and single settings
(`--set model.d_model=256`). Without any of them, it is the paper's base model. `regard train` without a
preset [chooses sizes from the data and the machine](train-your-own.md#2-size-and-duration), in place of those
of `small`, `generator` or `classifier`, and leaves what a file or `--set` says. One error reports all
unknown settings, wrong types and contradictions. Numbers in parentheses are sections of the paper. Settings
that name a choice take [choices of your own](extending.md) too.

`regard config` prints the result; `regard config --describe` adds these descriptions as comments.
"""


def reference() -> str:
    """The reference page: every setting and every preset, as Markdown."""
    parts = [HEADING]
    for name, section in SECTIONS.items():
        parts += [
            f"## `[{name}]`\n",
            inspect.cleandoc(section.__doc__ or "") + "\n",
            "| setting | takes | default | meaning |",
            "|---|---|---|---|",
            *_reference_rows(name, section),
            "",
        ]
    parts += ["## Presets\n", "| preset | what it is |", "|---|---|"]
    parts += [f"| `{name}` | {summary(name)} |" for name in PRESETS]
    return "\n".join(parts) + "\n"


def _reference_rows(name: str, section: type[Section]) -> list[str]:
    rows = []
    for field in fields(section):
        kind = types_of(section)[field.name]
        default = toml_value(kind, field.default)
        meaning = descriptions(section)[field.name]
        rows.append(f"| `{name}.{field.name}` | {_takes(kind)} | `{default}` | {meaning} |")
    return rows


def _takes(kind: Any) -> str:
    if words := choices(kind):
        return ", ".join(f'`"{word}"`' for word in words)
    names = [f"`{KIND_NAMES[one]}`" if one is NoneType else KIND_NAMES[one] for one in kinds(kind)]
    return " or ".join(names)
