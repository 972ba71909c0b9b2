"""Reads a configuration from a preset, a TOML file and `--set`; each overrides the one before.

One error reports everything that is wrong: unknown settings, values of the wrong type, contradictions.
"""

import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from types import NoneType
from typing import Any

from regard.config.checking import choices, kinds, merged, shown, type_error, types_of
from regard.config.presets import preset as preset_named
from regard.config.run import SECTIONS, RunConfig
from regard.errors import ConfigError

KINDS: dict[str, Any] = {
    f"{name}.{field}": kind for name, section in SECTIONS.items() for field, kind in types_of(section).items()
}
"""The type of every setting, by its dotted name."""

FROM_COMMAND_LINE = "--set"
MOST_BYTES = 1 << 20
"""Size of the largest configuration file that is read."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as it was written, before any check."""

    name: str
    value: object
    origin: str


def written_task(file: Path | str | None = None, settings: Sequence[str] = ()) -> str | None:
    """The task that single settings or a file name; None if they name none, or cannot be read.

    Raises nothing: `read_config` reports what is wrong.
    """
    table: dict[str, Any] = {}
    with suppress(ConfigError):
        table = {} if file is None else _read_toml(Path(file))
    written = [*_flatten(table, str(file)), *map(_split, settings)]
    named = [setting.value for setting in written if setting.name == "task.name" and setting.value]
    return str(named[-1]) if named else None


def read_config(
    *, preset: str | None = None, file: Path | str | None = None, settings: Sequence[str] = ()
) -> RunConfig:
    """The configuration that a preset, a file and single settings give together.

    Args:
        preset: where to start; it wins over a `preset` line in the file. Without either: `paper-base`.
        file: a TOML file with the sections `[task]`, `[model]`, `[data]`, `[training]` and `[decoding]`.
        settings: like `model.d_model=256`; the last one for a name counts.

    Raises:
        ConfigError: with every problem at once.
    """
    table = {} if file is None else _read_toml(Path(file))
    base, errors = _base(preset, table)
    written = [*_flatten(table, str(file)), *(_split(text) for text in settings)]
    origins = [*([str(file)] if file else []), *([FROM_COMMAND_LINE] if settings else [])]

    accepted: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    for setting in written:
        section, _, field = setting.name.partition(".")
        try:
            accepted[section][field] = _value_of(setting)
        except ConfigError as error:
            # With two places to look in, each line says which one it means.
            prefix = f"{setting.origin}: " if len(origins) > 1 else ""
            errors.append(ConfigError([prefix + problem for problem in error.problems], code=error.code))

    config, contradictions = _apply(base, accepted)
    if errors := errors + contradictions:
        raise merged(errors, " and ".join(origins) or None)
    return config


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        if (size := file.stat().st_size) > MOST_BYTES:
            problem = f"has {size:,} bytes; a configuration has at most {MOST_BYTES:,}"
            raise ConfigError(problem, str(file), code="not_toml")
        # "utf-8-sig": some editors open a file with a byte order mark, which TOML has no word for.
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", str(file), code="missing_file") from error
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 text: {error.reason} at byte {error.start}"
        raise ConfigError(problem, str(file), code="not_utf8") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"is not valid TOML: {error}", str(file), code="not_toml") from error


def _base(argument: str | None, table: dict[str, Any]) -> tuple[RunConfig, list[ConfigError]]:
    """The preset to start from, removed from `table` if it is there, and what is wrong with its name."""
    in_file = table.pop("preset", "paper-base")
    name = in_file if argument is None else argument
    if not isinstance(name, str):
        problem = f"preset expects the name of a preset, got {shown(name)}"
        return RunConfig(), [ConfigError(problem, code="wrong_type")]
    try:
        return preset_named(name), []
    except ConfigError as error:
        return RunConfig(), [error]


def _flatten(table: dict[str, Any], origin: str) -> Iterator[Setting]:
    """The settings of a file under their dotted names; what is not inside a section keeps its bare name."""
    for name, value in table.items():
        if isinstance(value, dict) and (value or name in SECTIONS):
            yield from (Setting(f"{name}.{field}", inner, origin) for field, inner in value.items())
        else:
            yield Setting(name, value, origin)


def _split(text: str) -> Setting:
    name, equals, value = text.partition("=")
    # Without "=" the value is missing, and no setting takes None from here: _value_of says so.
    return Setting(name.strip(), value.strip() if equals else None, FROM_COMMAND_LINE)


def _value_of(setting: Setting) -> object:
    """The value of a setting in the type of its field; raises ConfigError if it does not fit."""
    if setting.name not in KINDS:
        raise ConfigError(unknown_setting(setting.name), code="unknown_setting")
    kind, value = KINDS[setting.name], setting.value
    if setting.origin == FROM_COMMAND_LINE:
        if value is None:
            problem = f"{setting.name} has no value; write {setting.name}=VALUE"
            raise ConfigError(problem, code="missing_value")
        value = _parse(str(value), kind)
    if NoneType in kinds(kind) and value in ("none", ""):
        return None
    if error := type_error(setting.name, kind, value):
        raise error
    return float(value) if float in kinds(kind) and isinstance(value, int) else value


def _parse(text: str, kind: Any) -> object:
    """A word from the command line in the type of its field; the word itself where it does not parse."""
    if choices(kind):
        return text
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    for number in (int, float):
        if number in kinds(kind):
            with suppress(ValueError):
                return number(text)
    return text


def unknown_setting(name: str) -> str:
    """The message for a setting that does not exist, with the one that may be meant."""
    if name in SECTIONS:
        return f"{name} is a section and takes no value; its settings are written {name}.NAME"
    near = _nearest_setting(name)
    hint = f"did you mean {near}?" if near else "`regard config` prints all settings"
    return f"{name} is not a setting; {hint}"


def _nearest_setting(name: str) -> str | None:
    """The setting that a wrong name may mean: in another section, else misspelt here, else elsewhere."""
    section, _, field = name.rpartition(".")
    everywhere = {known.rpartition(".")[2]: known for known in KINDS}
    if field in everywhere:
        return everywhere[field]
    here = [known for known in everywhere if f"{section}.{known}" in KINDS]
    near = get_close_matches(field, here, n=1) or get_close_matches(field, everywhere, n=1)
    return everywhere[near[0]] if near else None


def _apply(base: RunConfig, accepted: dict[str, dict[str, Any]]) -> tuple[RunConfig, list[ConfigError]]:
    """`base` with the accepted settings, and their contradictions."""
    sections = {}
    found: list[ConfigError] = []
    for name, changes in accepted.items():
        try:
            sections[name] = replace(getattr(base, name), **changes)
        except ConfigError as error:
            found.append(error)
    return replace(base, **sections), found
