"""Which libraries are there, held against what `regard` asks for when it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata, requires, version

from packaging.requirements import Requirement

from regard.doctor.facts import Extra, Library

Installed = Callable[[str], str | None]
NOT_FOR_USERS = ("dev",)
"""Extras that are for those who work on `regard`."""


def declared() -> tuple[list[Requirement], list[str]]:
    """What `regard` asks for, and the names of its extras; nothing where it is not installed."""
    try:
        extras = metadata("regard").get_all("Provides-Extra") or []
        return [Requirement(each) for each in requires("regard") or []], extras
    except PackageNotFoundError:
        return [], []


def installed_version(name: str) -> str | None:
    """The version of a library; None where it is missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def import_problem(name: str) -> str | None:
    """Why a library cannot be imported; None where it can."""
    try:
        import_module(name)
    except Exception as error:  # a library that is broken may fail in any way
        return f"{type(error).__name__}: {error}"
    return None


def libraries(
    wanted: Iterable[Requirement], installed: Installed, problems: Mapping[str, str | None]
) -> list[Library]:
    """Those that are always needed; `problems` has why some cannot be imported."""
    return [
        Library(
            name=each.name,
            required=str(each.specifier),
            installed=found,
            fits=_fits(each, found),
            problem=problems.get(each.name),
        )
        for each in wanted
        if _applies(each, extra="")
        for found in [installed(each.name)]
    ]


def extras(wanted: list[Requirement], names: Iterable[str], installed: Installed) -> list[Extra]:
    """Those that only some need, with what each lacks."""
    return [
        Extra(name, tuple(str(each.name) for each in wanted if _lacks(each, name, installed)))
        for name in names
        if name not in NOT_FOR_USERS
    ]


def _lacks(each: Requirement, extra: str, installed: Installed) -> bool:
    return _is_of(each, extra) and not _fits(each, installed(each.name))


def _is_of(each: Requirement, extra: str) -> bool:
    return not _applies(each, extra="") and _applies(each, extra=extra)


def _applies(each: Requirement, extra: str) -> bool:
    return each.marker is None or each.marker.evaluate({"extra": extra})


def _fits(each: Requirement, found: str | None) -> bool:
    return found is not None and each.specifier.contains(found, prereleases=True)
