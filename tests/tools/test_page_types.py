"""The check of the page's types: what it finds, and where it cannot run."""

import json
import shutil

import pytest

from tools import page_types

WRONG = """\
// @param says one thing, and the call another.

/** @param {number} count */
export const twice = (count) => 2 * count;

export const four = twice("2");
"""


def test_without_node_the_check_is_skipped_and_says_so(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert page_types.main() == 0
    assert capsys.readouterr().out == "the types of the page are not checked: Node is not installed\n"


def test_without_npm_the_check_is_skipped_and_says_so(tmp_path, monkeypatch, capsys):
    node = tmp_path / "node"
    node.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(page_types, "INSTALLED", tmp_path / "typescript")
    assert page_types.main() == 0
    assert capsys.readouterr().out == "the types of the page are not checked: npm is not installed\n"


def test_the_pins_agree():
    package = json.loads((page_types.PINS / "package.json").read_text())
    lock = json.loads((page_types.PINS / "package-lock.json").read_text())
    locked = lock["packages"]["node_modules/typescript"]
    assert package["devDependencies"] == {"typescript": locked["version"]}
    assert locked["integrity"].startswith("sha512-")


@pytest.mark.slow
def test_a_call_with_a_wrong_type_is_found(tmp_path, capfd):
    if shutil.which("node") is None or (page_types.compiler() is None and page_types.install()):
        pytest.skip("TypeScript is not installed, and cannot be")
    settings = json.loads((page_types.PINS / "tsconfig.json").read_text())
    (tmp_path / "tsconfig.json").write_text(json.dumps({**settings, "include": ["*.js"]}))
    (tmp_path / "wrong.js").write_text(WRONG)
    assert page_types.main(tmp_path / "tsconfig.json") != 0
    assert "wrong.js(6,27): error TS2345" in capfd.readouterr().out
    (tmp_path / "wrong.js").write_text(WRONG.replace('"2"', "2"))
    assert page_types.main(tmp_path / "tsconfig.json") == 0
