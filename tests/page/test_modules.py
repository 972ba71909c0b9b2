"""The page's modules: what they say, what they leave undone, and their own tests, run in Node."""

import json
import re
from posixpath import dirname, join, normpath

import pytest

from regard import page
from regard.experiments.registry import NAMES

MODULES = [name for name in page.names() if name.endswith(".js")]
SAID = re.compile(r"""\bt\(\s*["']([\w.-]+)["']""")
IMPORTED = re.compile(r'from "([^"]+)"')
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"style\""
)


@pytest.mark.parametrize("file", ["pure.test.mjs", "server.test.mjs", "lesson.test.mjs", "learn.test.mjs"])
def test_modules_that_need_no_browser(node, file):
    result = node("cases", f"./{file}")
    assert result["failed"] == []
    assert result["count"] > 9


def words(language):
    return json.loads(page.read(f"words/{language}.json"))


def gaps(text):
    return sorted(re.findall(r"\{\w+\}", text))


def test_both_languages_have_the_same_words_with_the_same_gaps():
    english, chinese = words("en"), words("zh")
    assert english.keys() == chinese.keys()
    assert {key: gaps(text) for key, text in english.items()} == {
        key: gaps(text) for key, text in chinese.items()
    }
    assert all(text.strip() for text in [*english.values(), *chinese.values()])


def test_every_experiment_has_a_name_in_words():
    assert {f"experiments.name.{name}" for name in NAMES} <= words("en").keys()


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_says_and_imports_exists(name):
    text = page.read(name)
    assert set(SAID.findall(text)) <= words("en").keys()
    imported = {normpath(join(dirname(name), path)) for path in IMPORTED.findall(text)}
    assert imported <= set(page.names()), "nothing comes from elsewhere"


@pytest.mark.parametrize("name", MODULES)
def test_modules_read_in_one_sitting_and_write_no_markup(name):
    text = page.read(name)
    assert len(text.splitlines()) <= 400
    assert not FORBIDDEN.search(text)


def test_forbidden_things_are_found():
    assert FORBIDDEN.search("node.innerHTML = text")
    assert FORBIDDEN.search('eval("1")')


def test_every_screen_has_its_words():
    ids = [re.search(r'^  id: "(\w+)"', page.read(name), re.MULTILINE) for name in MODULES]
    screens = [found[1] for found in ids if found]
    assert len(screens) == 18
    assert {key for screen in screens for key in (screen, f"{screen}.note")} <= words("en").keys()


def test_the_style_sheet_has_the_colours_of_figures():
    palettes = json.loads(page.read("style.json"))["palette"]
    light, dark = re.findall(r"^:root[^{\n]*\{(.*?)\}", page.read("page.css"), re.MULTILINE | re.DOTALL)[:2]
    for theme, rules in (("light", light), ("dark", dark)):
        colours = dict(re.findall(r"--(\w+): (#\w+);", rules))
        shared = colours.keys() & palettes[theme].keys()
        assert len(shared) >= 9
        assert {name: colours[name] for name in shared} == {name: palettes[theme][name] for name in shared}


JOINED = """\
import { add, start as begin } from "./parts/sum.js";
import numbers from "../numbers.json" with { type: "json" };
export const { one: ONE, two } = numbers;
export class Pair {}
export async function* each() {}
export function sum() { return add(begin, two); }
"""


def test_modules_become_one_script_which_node_runs_as_it_runs_modules(node, tmp_path):
    for entry in ("server.js", "saved.js"):
        text = page.joined(entry)
        places = [text.index(f"\n// {name}\n") if i else 0 for i, name in enumerate(page.needed(entry))]
        assert places == sorted(places)
    files = {
        "a/main.js": JOINED,
        "a/parts/sum.js": "export const start = 3;\nexport const add = (a, b) => a + b;\n",
        "numbers.json": '{"one": 1, "two": 2}',
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "read", files.__getitem__)
        script = tmp_path / "script.mjs"
        ends = "export const found = [$a_main_js.sum(), $a_main_js.ONE, Object.keys($a_main_js).join()];"
        script.write_text(page.joined("a/main.js") + ends, encoding="utf-8")
        assert node("found_in", str(script)) == [5, 1, "ONE,two,Pair,each,sum"]


@pytest.mark.parametrize(
    "line",
    [
        "export let counted = 0;",
        "export default 3;",
        'export * from "./parts/sum.js";',
        'import "./parts/sum.js";',
        'import whole from "./parts/sum.js";',
        'import * as sum from "./parts/sum.js";',
        'import { two } from "./parts/sum.js";',
        'import { main } from "./main.js";',
    ],
)
def test_what_cannot_be_joined_is_refused(line, monkeypatch):
    files = {"main.js": f"{line}\n", "parts/sum.js": "export const one = 1, two = 2;\n"}
    monkeypatch.setattr(page, "read", files.__getitem__)
    with pytest.raises(ValueError, match=r"main\.js"):
        page.joined("main.js")
