"""What the bundled translator's corpus drops, and what it must not."""

import pytest

from tests.architecture.sources import ROOT

FOLDER = ROOT / "models" / "zh-en"


@pytest.fixture(scope="module")
def scripts():
    """The modules that stand beside each other in models/zh-en."""
    import importlib

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield {name: importlib.import_module(name) for name in ("rules", "sources", "data")}


def dropped_by(scripts, zh, en):
    return next((name for name, rule in scripts["rules"].RULES.items() if rule(zh, en)), None)


@pytest.mark.parametrize(
    ("zh", "en", "rule"),
    [
        ("猫坐在垫子上。", "The cat sat on the mat.", None),
        ("他7点到了火车站。", "He arrived at the station at seven.", None),
        ("2017 年 12 月发布", "Released in December 2017", None),
        ("他有二十一本书。", "He has 21 books.", None),
        (
            "默认情况下，应用将在其目标 .NET Framework 版本上运行。",
            "By default, an app runs on the .NET Framework version.",
            None,
        ),
        ("使用 grow()", "Using grow()", None),
        (
            "描述器可以通过 d.__get__(obj) 直接调用。",
            "A descriptor can be called directly with d.__get__(obj).",
            None,
        ),
        ("成功机率：%.1f%%", "Success chance: %.1f%%", None),
        ("Windows", "windows", "same"),
        ("OpenStreetMap contributors", "contributors of OpenStreetMap", "no chinese"),
        ("决定当前用户的语言", "Determining the language。", "no english"),
        ("推荐您去秋刀鱼の味", "I recommend The Taste of Saury.", "another script"),
        ("总是处理错误", "a#error-handling :marked ### Always handle errors", "markup"),
        ("应用的根节点*总是来自模板。", "The root of the application is always a template.", "signs"),
        ("去试试吧。", "Try the .", "hole"),
        ("所有的东西都在 中被烧掉了。", "All that stuff burned away in .", "hole"),
        ("请参阅。", "See the page.", "hole"),
        ("token 是用于身份验证的令牌。 tokenFile string", "Token is the bearer token", "identifiers"),
        ("默认情况下为 false，意味着不可见。", "By default this attribute is absent.", "latin words"),
        ("我需要10个", "I need 55", "numbers"),
        ("百色", "Bose or Baise prefecture-level city in Guangxi", "lengths"),
    ],
)
def test_a_pair_is_dropped_for_a_reason_or_kept(scripts, zh, en, rule):
    assert dropped_by(scripts, zh, en) == rule


def test_what_hides_a_good_translation_is_mended(scripts):
    mended = scripts["rules"].mended
    assert mended("这些被称为*值*（value）。", "These are called **values**.") == (
        "这些被称为值（value）。",
        "These are called values.",
    )
    assert mended("一 。", "A welder 's mask .", tokenised=True) == ("一。", "A welder's mask.")
    assert mended("在 。", "In .") == ("在 。", "In ."), "elsewhere this is a hole"


def test_half_a_sentence_is_known_by_its_edges(scripts):
    fragment = scripts["rules"].fragment
    assert fragment("", "that he should use his head.")
    assert fragment("", "It's just hard for me to reconcile")
    assert not fragment("", "It's not your fault.")
    assert not fragment("", '"Number 37!"')


def test_nothing_known_comes_through_and_nothing_twice(scripts):
    from collections import Counter

    data = scripts["data"]
    counts = {name: Counter() for name in ("tatoeba", "msdocs")}
    template = "在下拉菜单中选择仓库编号{}。"
    pairs = {
        "tatoeba": [("你好！", "Hi."), ("你 好", "hi"), ("再见。", "Bye."), ("早上好", "GOOD morning!")],
        "msdocs": [(template.format(i), f"Select warehouse {i}.") for i in range(10, 20)],
    }
    data.unique(pairs, data.forms([("再见", "See you"), ("早", "Good morning")]), counts)
    assert pairs["tatoeba"] == [("你好！", "Hi.")]
    assert counts["tatoeba"] == {"duplicate": 1, "held out": 2}
    assert len(pairs["msdocs"]) == data.SKELETONS
    assert counts["msdocs"] == {"near duplicate": 10 - data.SKELETONS}


def test_a_weight_is_copies_and_a_part(scripts):
    from collections import Counter

    data, sources = scripts["data"], scripts["sources"]
    (source,) = [name for name, each in sources.SOURCES.items() if name == "msdocs"]
    assert sources.SOURCES[source].weight == 0.7
    pairs = {source: [(str(i), str(i)) for i in range(100)], "tatoeba": [("一", "one")]}
    counts = {name: Counter() for name in pairs}
    everything = data.weighed(pairs, counts)
    assert (counts[source]["kept"], counts[source]["written"]) == (100, 70)
    assert everything.count(("一", "one")) == sources.SOURCES["tatoeba"].weight
    assert len(set(everything)) == 71


def test_what_may_not_be_passed_on_is_not_used(scripts):
    forbidden = {"tvsub", "wcc", "aic", "newscommentary", "wesnoth", "ethereum", "ss14"}
    assert not forbidden & set(scripts["sources"].SOURCES)
