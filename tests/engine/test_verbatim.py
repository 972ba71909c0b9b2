"""What is no language comes out as it went in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.engine.document.verbatim import around_exact, exact, verbatim, with_placeholders


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("见 https://a.org/b?c=1&d#e。", ["https://a.org/b?c=1&d#e"]),
        ("(http://10.0.0.1:80/x).", ["http://10.0.0.1:80/x"]),
        ("ask me@mail.example.org, or ~you", ["me@mail.example.org"]),
        ("Hello {name}, ${a} {{ b }} %s %(n)d %1$s", ["{name}", "${a}", "{{ b }}", "%s", "%(n)d", "%1$s"]),
        ("50% discount, 5%sugar", []),
        ("Run `pip install x` in C:\\new\\dir or a\\b", ["`pip install x`", "C:\\new\\dir", "a\\b"]),
        ('<a href="x">one</a> < two', ['<a href="x">', "</a>", "<"]),
        ("a -> b <= c, d - e = f", ["->", "<="]),
        (
            "0x80070005 at 192.168.0.1, 13800138000; 10000000 on 5.3.2024",
            ["0x80070005", "192.168.0.1", "13800138000"],
        ),
        ("好👍🏽！ ❤️", ["👍🏽", "❤️"]),
        ("Nothing here: it's 5 o'clock (nearly).", []),
    ],
)
def test_what_is_found(text, found):
    assert verbatim(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"缩放因子是\sqrt{d_k}，其中 $d_k$ 是维度。", [r"\sqrt{d_k}", "$d_k$"]),
        (r"\frac{QK^T}{\sqrt{d_k}} V and \alpha_i^2", [r"\frac{QK^T}{\sqrt{d_k}}", r"\alpha_i^2"]),
        (r"\(a + b\), \[c\] and $$d = 1$$", [r"\(a + b\)", r"\[c\]", "$$d = 1$$"]),
        (r"\begin{a}x  y\end{a}", [r"\begin{a}x  y\end{a}"]),
        ("`x  y`, ``a ` b`` and $2x + 1$", ["`x  y`", "``a ` b``", "$2x + 1$"]),
        ("$5 and $10, $5-$10, US$5, 5$ or $ 7 $", []),
        ("$x and $y, $HOME/bin", []),
    ],
)
def test_code_and_formulas(text, found):
    assert exact(text) == found
    assert set(found) <= set(verbatim(text))
    assert "".join(around_exact(text)) == text
    assert around_exact(text)[1::2] == found


def test_stand_ins_are_names_that_the_text_does_not_have_and_no_part_of_a_word():
    assert with_placeholders("Set {a} to {a}.").text == "Set X1 to X2."
    assert with_placeholders("X1 is {a}").text == "X1 is Z1"
    assert with_placeholders("X1 Z2 Q3 {a}") is None
    assert with_placeholders("<b>one</b>two 好{x}吗").text == "X1 one X2 two 好X3吗"


def test_outputs_get_back_what_was_hidden_and_must_have_each_once():
    text = with_placeholders("{a} of {b}")
    assert text.restored("X2 中的 X1") == "{b} 中的 {a}"
    assert text.restored("X2中的X1个") == "{b}中的{a}个"
    assert with_placeholders("{a}{b}").restored("X1X2") == "{a}{b}"
    assert text.restored("X1") is None
    assert text.restored("X1 X2 X1") is None
    assert text.restored("X1 X22") is None
    many = with_placeholders(" ".join(f"{{{i}}}" for i in range(12)))
    assert many.restored(many.text) == " ".join(f"{{{i}}}" for i in range(12))


@given(st.text(st.sampled_from("{}<>`\\ ab1@.:/X%s好") | st.characters(codec="utf-8"), max_size=50))
def test_an_echo_of_what_is_hidden_is_the_text_but_for_spaces(text):
    found = with_placeholders(text)
    if found is not None:
        echoed = found.restored(found.text)
        assert echoed is not None
        assert echoed.replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    "run",
    [
        "a",
        "-",
        "=",
        "<",
        "{",
        "`",
        "a\\",
        "a@",
        "a.",
        "1.",
        "{{a",
        "%(",
        "http://",
        "$",
        "$a",
        "$a ",
        "`a",
        "``",
        "``a",
        "\\(",
        "\\[a",
        "\\a{",
        "\\a{{",
        "\\a{b}",
    ],
)
def test_a_long_run_of_signs_is_read_through_once(run):
    """Where every sign of a run is begun from anew, this takes minutes."""
    text = run * 100_000
    assert "".join(verbatim(f"{text} {{name}}")).endswith("{name}")
