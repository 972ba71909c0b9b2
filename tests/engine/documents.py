"""Documents with blocks of code, made at random."""

from hypothesis import strategies as st

CODE = [
    "```\nx = 1   # 设置变量\t\n\n\tprint( x )  \n```",
    '```python title="a b"\nfor  i  in x:\n    # one. Two. Three!\n```',
    "~~~ sh\npip  install   x\n~~~~",
    "  ```\n  indented fence  \n  ```",
    "    for i in x:\n        print( i )   # 打印\n\n    return  3",
    "\tmake  all   # 编译",
    "$$\n\\frac{Q K^T}{\\sqrt{d_k}}   V\n$$",
    "\\[\na  =  b\n\\]",
    "\\begin{align*}\nx &= 1  \\\\\ny &= 2\n\\end{align*}",
]
"""Blocks that come out byte for byte."""
_PROSE = ["三月五日。", "One. Two!", "# 四月", "- five", "`x  y` 是 $a_1$。", "It costs $5 or $10."]


@st.composite
def documents(draw):
    """A document, and its blocks of code as they are in it."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    parts, blocks = [], []
    for prose, block in draw(st.lists(st.tuples(st.sampled_from(_PROSE), st.sampled_from(CODE)), max_size=5)):
        blocks.append(block.replace("\n", end))
        parts += [prose, blocks[-1]]
    return (end * 2).join([*parts, draw(st.sampled_from(_PROSE))]), blocks
