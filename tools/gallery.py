"""The gallery of the site: saved pages of a translator, a classifier and a generator, which need no server.

The translator is the bundled one. The other two are trained here, in some seconds each, on the dates of the
examples and on sentences of the built-in corpus; what they say is what such small models say.
"""

from __future__ import annotations

import runpy
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regard
from regard.data.numerals import sample

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "gallery"

TITLES = {"en": "Gallery", "zh": "画廊"}
INTRODUCTIONS = {
    "en": "Each page below is one file with all attention weights of one text and the model's other numbers. "
    "It works from disk, without a server and without a network: look at any head, follow the formula number "
    "by number, and do the exercises. `regard look TEXT -o page.html` makes such a file of your own text.",
    "zh": "下面每个网页都是一个文件，包含一段文本的全部注意力权重和模型的其他数据。它直接从磁盘打开，"
    "不需要服务器，也不需要网络：可以查看任何一个头，逐个数字地走完公式，做练习。"
    "`regard look TEXT -o page.html` 可以为您自己的文本生成这样的文件。",
}
SCREENS = {"en": ("all heads", "one head", "walkthrough"), "zh": ("全部注意力头", "单个注意力头", "逐步推演")}
SCREEN_IDS = ("map", "head", "walk")


@dataclass(frozen=True, slots=True)
class SavedPage:
    """A saved page, and what the gallery says about it."""

    name: str
    titles: dict[str, str]
    notes: dict[str, str]
    text: str
    html: str
    picture: str
    """One head, as SVG."""

    def described(self, language: str) -> str:
        """Its part of the gallery, in Markdown."""
        links = " · ".join(
            f"[{words}]({self.name}.html#lang={language}&screen={screen})"
            for words, screen in zip(SCREENS[language], SCREEN_IDS, strict=True)
        )
        size = f"{len(self.html.encode()) / 1e6:.1f} MB"
        quoted = self.text.replace("\n", "\n> ")
        title, picture = self.titles[language], f"{self.name}.svg"
        parts = [
            f"## {title}",
            f"> {quoted}",
            self.notes[language],
            f"{links} ({size})",
            f"![{title}]({picture})",
        ]
        return "\n\n".join(parts) + "\n"

    def write(self, folder: Path) -> None:
        """Write the page and its picture."""
        (folder / f"{self.name}.html").write_text(self.html, encoding="utf-8")
        (folder / f"{self.name}.svg").write_text(self.picture, encoding="utf-8")


def gallery_page(pages: list[SavedPage], language: str) -> str:
    """The list of the pages, in Markdown."""
    parts = [
        f"# {TITLES[language]}\n\n{INTRODUCTIONS[language]}\n",
        *(page.described(language) for page in pages),
    ]
    return "\n".join(parts)


def saved_pages() -> Iterator[SavedPage]:
    """Every page of the gallery. Models that are trained here go into a temporary folder."""
    translator = regard.load()
    for name, text, titles, notes in TRANSLATIONS:
        yield SavedPage(name, titles, notes, *_page(translator, text, beam_size=4))
    with tempfile.TemporaryDirectory() as folder:
        yield SavedPage("classifier", *CLASSIFIER, *_page(_classifier(Path(folder)), "七月七日星期二"))
        generator = _generator(Path(folder))
        text = generator.generate(PROMPT, max_tokens=12, temperature=0).text
        yield SavedPage("generator", *GENERATOR, *_page(generator, f"{PROMPT}{text}"))


def _page(model: Any, text: str, **search: int) -> tuple[str, str, str]:
    """A text, the saved page of a model that reads it, and a picture of one head."""
    trace = model.look(text, **search)
    place, aligning = {}, {}
    if trace.beam is not None:  # a translator
        aligning["aligning"] = model.aligning_heads
        place = dict(zip(("layer", "head"), model.aligning_heads.heads[0], strict=True))
    with tempfile.TemporaryDirectory() as folder:
        page, picture = Path(folder) / "page.html", Path(folder) / "picture.svg"
        trace.save(page, **aligning)
        trace.save(picture, "matrix", **place)
        return text, page.read_text(encoding="utf-8"), picture.read_text(encoding="utf-8")


def _classifier(folder: Path) -> Any:
    """The classifier of examples/classifier.py."""
    example = runpy.run_path(str(ROOT / "examples" / "classifier.py"))
    table = folder / "seasons.tsv"
    example["write_table"](table)
    return regard.train(table, task="classify", out=folder / "seasons", settings=example["SMALL"]).model


def _generator(folder: Path) -> Any:
    """A generator of the English sentences of the built-in corpus."""
    file = folder / "sentences.txt"
    lines = [pair.english for pair in sample("train", 3000, seed=1)]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    settings = {
        "model.vocab_size": 420,
        "model.d_model": 64,
        "model.d_ff": 256,
        "model.n_heads": 4,
        "model.decoder_layers": 3,
        "training.batch_tokens": 640,
        "training.max_steps": 500,
        "training.learning_rate": 2e-3,
        "training.warmup_steps": 30,
    }
    return regard.train(file, task="generate", out=folder / "generator", settings=settings).model


PROMPT = "The meeting starts at"
TRANSLATIONS = [
    (
        "translator-zh",
        "我昨天在北京的一家小书店里买了一本关于鸟的书。",
        {"en": "Chinese to English: another word order", "zh": "中译英：语序不同"},
        {
            "en": "The bundled translator. Chinese puts time and place before the verb, English after it: "
            "the cross-attention of an aligning head jumps back and forth.",
            "zh": "随附的翻译模型。中文把时间和地点放在动词之前，英文放在之后："
            "在负责对齐的头里，交叉注意力来回跳动。",
        },
    ),
    (
        "translator-en",
        "The animal didn't cross the street because it was too tired.",
        {"en": "English to Chinese: what is “it”?", "zh": "英译中：it 指什么？"},
        {
            "en": "The bundled translator. Select “it”, and look for encoder heads that attend to “animal”.",
            "zh": "随附的翻译模型。选中 it，找一找关注 animal 的编码器头。",
        },
    ),
    (
        "translator-date",
        "今天是五月二十二日。",
        {"en": "A date", "zh": "一个日期"},
        {
            "en": "Month and day swap places. One cross-attention head of the first layer carries the month: "
            "without head 1, the output is “Today is the twenty-second.”",
            "zh": "月和日交换位置。第一层的一个交叉注意力头负责月份：关闭 1 号头后，"
            "输出变成“Today is the twenty-second.”。",
        },
    ),
]
CLASSIFIER = (
    {"en": "A classifier: which season is a date in?", "zh": "分类器：日期属于哪个季节？"},
    {
        "en": "The encoder alone, trained in seconds on the dates of the examples. "
        "Which token does [CLS] attend to?",
        "zh": "只有编码器，用示例中的日期训练了几秒。[CLS] 关注哪个词元？",
    },
)
GENERATOR = (
    {"en": "A generator: the decoder alone", "zh": "生成模型：只有解码器"},
    {
        "en": "Trained in seconds on sentences about numbers. Every token attends only to itself and to "
        "earlier ones.",
        "zh": "用关于数字的句子训练了几秒。每个词元只关注自身及之前的词元。",
    },
)
