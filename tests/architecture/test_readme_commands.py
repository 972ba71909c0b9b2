"""Every command and every piece of Python in the README and the docs works as it is printed."""

import ast
import shlex

import pytest

from tests.architecture.pages import commands, failures, is_run, plain_words, python_of
from tests.architecture.sources import ROOT

NAMED = ["README.md", "CONTRIBUTING.md", "examples/README.md"]
PAGES = [*(ROOT / name for name in NAMED), *sorted((ROOT / "docs").rglob("*.md"))]

GOOD = """\
```bash
# a comment
make test PYTHON=python3.12   # a reason
pip install -e '.[dev]'
printf 'one line\\n' \\
  > out.txt
grep line out.txt
```

```console
$ python -c "print(1)"
1
```

```python
x = 1
```

```text
$ this is no command
```

```python
assert x == 1
```
"""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_says(page, tmp_path, request):
    if "--out runs/dates" in page.read_text(encoding="utf-8"):
        # Trained by the same command: with any other settings or data, `regard train` would refuse it.
        request.getfixturevalue("dates_run")(tmp_path)
    assert list(failures(page, ROOT, tmp_path)) == []


def what_it_runs(page):
    """Commands and Python of a page, without comments."""
    words = [shlex.split(command, comments=True) for command in commands(page)]
    return words, ast.dump(ast.parse(python_of(page)))


def test_the_chinese_readme_runs_what_the_english_one_does():
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md"))
    assert what_it_runs(chinese) == what_it_runs(english)
    assert what_it_runs(chinese.replace("regard doctor", "regard docter")) != what_it_runs(english)


def small_checkout(folder, page):
    root = folder / "checkout"
    root.mkdir()
    (root / "Makefile").write_text("PYTHON := python3\ntest: installed\n\techo\n")
    (root / "pyproject.toml").write_text("[project]\noptional-dependencies = {dev = []}\n")
    (root / "PAGE.md").write_text(page)
    (folder / "work").mkdir()
    return root / "PAGE.md", root, folder / "work"


def test_a_page_that_works_passes(tmp_path):
    assert list(failures(*small_checkout(tmp_path, GOOD))) == []


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("```bash\nfalse\n```\n", "false"),
        ("```console\n$ python -m regard tarnslate\n```\n", "tarnslate"),
        ("```console\n$ regard tarnslate\n```\n", "tarnslate"),
        ("```console\n$ printf x | regard tarnslate\n```\n", "tarnslate"),
        ("```bash\nmake tset\n```\n", "no door tset"),
        ("```bash\npip install 'regard[sevre]'\n```\n", "no extra sevre"),
        ("Text.\n\n```python\nimport regard\nregard.nothing\n```\n", 'PAGE.md", line 5'),
    ],
)
def test_a_page_that_does_not_work_is_found(tmp_path, page, complaint):
    (failure,) = failures(*small_checkout(tmp_path, page))
    assert complaint in failure


def test_what_is_run_and_what_is_not():
    found = list(commands(GOOD))
    assert found[0] == "make test PYTHON=python3.12   # a reason"
    assert [command for command in found if is_run(command)] == [
        "printf 'one line\\n'    > out.txt",
        "grep line out.txt",
        'python -c "print(1)"',
    ]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("regard look '猫 | 狗' -o a.html  # a page", ["look", "猫 | 狗", "-o", "a.html"]),
        ("regard translate < a.zh > a.en", None),
        ("printf 'x' | regard translate", None),
        ("regard info a && regard info b", None),
        ("python -m regard info a", None),
    ],
)
def test_a_shell_is_used_where_it_is_needed(command, words):
    assert plain_words(command) == words


def test_python_keeps_the_lines_of_the_page():
    lines = python_of(GOOD).splitlines()
    assert lines[GOOD.splitlines().index("assert x == 1")] == "assert x == 1"
