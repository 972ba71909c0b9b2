"""What is installed is held against what is asked for, and what is missing has a name."""

from packaging.requirements import Requirement

from regard.doctor.examination import declared, extras, import_problem, libraries

WANTED = [
    Requirement("torch>=2.11"),
    Requirement("numpy"),
    Requirement("fastapi>=0.115; extra == 'serve'"),
    Requirement("uvloop>=0.20; sys_platform == 'abacus' and extra == 'serve'"),
    Requirement("pytest>=8; extra == 'dev'"),
]


def test_libraries_that_are_old_or_missing_do_not_fit():
    torch, numpy = libraries(WANTED, {"torch": "2.9.1+cpu"}.get, {"torch": "it hurts"})
    assert (torch.installed, torch.required, torch.fits, torch.problem) == (
        "2.9.1+cpu",
        ">=2.11",
        False,
        "it hurts",
    )
    assert (numpy.installed, numpy.fits, numpy.problem) == (None, False, None)
    assert all(each.fits for each in libraries(WANTED, {"torch": "2.12.0a1", "numpy": "1"}.get, {}))


def test_an_extra_lacks_what_this_system_needs_and_has_not():
    (serve,) = extras(WANTED, ["dev", "serve"], {}.get)
    assert (serve.name, serve.missing) == ("serve", ("fastapi",))
    (serve,) = extras(WANTED, ["dev", "serve"], {"fastapi": "0.116"}.get)
    assert serve.missing == ()


def test_what_is_installed_here_declares_what_it_needs():
    wanted, names = declared()
    assert "torch" in {each.name for each in wanted}
    assert "dev" in names


def test_a_library_that_cannot_be_imported_says_why(tmp_path, monkeypatch):
    (tmp_path / "brittle_library.py").write_text(
        "raise OSError('libgomp.so.1: cannot open')", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert import_problem("brittle_library") == "OSError: libgomp.so.1: cannot open"
    assert import_problem("json") is None
