"""Build the documentation as a site: plain pages, light and dark, no script, readable from disk.

    python tools/site.py [OUT] [--no-gallery]

The site mirrors the project: `docs/look.md` becomes `docs/look.html`, `README.md` is the first page, and a
source file that some page links to becomes a page too. So a link that works in the project works here.
The gallery has saved pages of models (`tools/gallery.py`); two of these are trained for it, in some seconds.
Markdown is read by markdown-it-py and code coloured by Pygments, both of which `rich` brings along: nothing
is installed for this.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path, PurePosixPath
from string import Template
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

ROOT = Path(__file__).resolve().parents[1]
STYLE = Path(__file__).with_name("site.css")
OUT = "_site"

CONTENTS = {
    "Start": [
        "README.md",
        "docs/train-your-own.md",
        "docs/reading-the-paper.md",
        "docs/reading-attention.md",
        "gallery/README.md",
        "examples/README.md",
    ],
    "Use": [
        "docs/look.md",
        "docs/page.md",
        "docs/serve.md",
        "docs/tasks.md",
        "docs/recipes.md",
        "docs/exchange.md",
        "docs/onnx.md",
        "docs/decoding.md",
        "docs/documents.md",
        "docs/scale.md",
    ],
    "Know": [
        "docs/figure-1.md",
        "docs/worked-example.md",
        "docs/claims.md",
        "docs/architecture.md",
        "docs/extending.md",
        "docs/departures.md",
        "docs/table-3.md",
    ],
    "Measure": ["docs/benchmarks.md", "docs/experiments.md", "benchmarks/README.md"],
    "Look up": ["docs/python.md", "docs/configuration.md", "docs/glossary.md"],
    "Project": ["CONTRIBUTING.md", "CHANGELOG.md"],
}
ELSEWHERE = "More"
"""Where pages stand that the contents do not name."""

PAGE = Template("""\
<!doctype html>
<html lang="$language">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<link rel="stylesheet" href="$up$style">
</head>
<body>
<nav>$navigation</nav>
<main>
$body
</main>
</body>
</html>
""")
CHINESE = ".zh.md"
"""How the name of a Chinese page ends."""
LANGUAGES = {"en": "English", "zh-Hans": "中文"}


@dataclass(frozen=True)
class Page:
    """A Markdown file of the project."""

    path: PurePosixPath
    tokens: list[Token]

    @property
    def language(self) -> str:
        """Its code, as HTML wants it."""
        return "zh-Hans" if self.path.name.endswith(CHINESE) else "en"

    @property
    def title(self) -> str:
        """The words of the first heading."""
        places = (i for i, token in enumerate(self.tokens) if token.type == "heading_open")
        first = next(places, None)
        return str(self.path) if first is None else words_of(self.tokens[first + 1])

    @property
    def other(self) -> PurePosixPath:
        """The same page in the other language, where it exists."""
        stem = self.path.name.removesuffix(".md").removesuffix(".zh")
        return self.path.with_name(stem + (CHINESE if self.language == "en" else ".md"))


def read_pages(root: Path) -> dict[PurePosixPath, Page]:
    """Every Markdown file that is for readers, by its path in the project."""
    files = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("[be]*/README.md")]
    pages = {}
    for file in sorted(files):
        path = PurePosixPath(file.relative_to(root).as_posix())
        pages[path] = Page(path, parser().parse(file.read_text(encoding="utf-8")))
    return pages


def parser() -> MarkdownIt:
    """CommonMark and tables; HTML is shown as text, but for `<br>`."""
    return MarkdownIt("commonmark", {"html": False, "highlight": coloured}).enable("table")


def coloured(code: str, language: str, _attributes: str) -> str:
    """Code with its syntax marked; what no lexer knows stays text."""
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        lexer = TextLexer()
    return highlight(code, lexer, HtmlFormatter(nowrap=True))


def with_breaks(tokens: Iterable[Token]) -> Iterator[Token]:
    """The tokens of a paragraph, where `<br>` breaks the line: the one piece of HTML that pages use."""
    for token in tokens:
        before, *others = token.content.split("<br>") if token.type == "text" else [token.content]
        token.content = before
        yield token
        for words in others:
            yield Token("hardbreak", "br", 0)
            yield Token("text", "", 0, content=words)


def words_of(inline: Token) -> str:
    """The text of a heading, without its marks."""
    return "".join(child.content for child in inline.children or [])


def anchor(words: str) -> str:
    """The name that GitHub gives to a heading, so that links work here and there."""
    return re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")


def site_path(path: PurePosixPath) -> PurePosixPath:
    """Where a file of the project is in the site: a page's name ends in `.html`, a picture keeps its own."""
    if path.suffix == ".md":
        name = re.sub(r"^README\b", "index", path.stem) + ".html"
        return path.with_name(name)
    return path if path.suffix in (".svg", ".png") else path.with_name(path.name + ".html")


class Site:
    """Everything that goes into the site, and what its pages link to."""

    def __init__(self, root: Path) -> None:
        self.root, self.pages = root, read_pages(root)
        self.linked: set[PurePosixPath] = set()
        """Files that are no pages, but that pages link to or show."""

    def add(self, path: str, text: str) -> None:
        """Add a page that is in no file of the project."""
        self.pages[PurePosixPath(path)] = Page(PurePosixPath(path), parser().parse(text))

    def build(self, out: Path) -> None:
        """Write all pages, then what they link to; an older site is replaced, and nothing else is."""
        if out.exists() and not (out / STYLE.name).is_file():
            sys.exit(f"{out} is there, and no site of ours: name a folder that is new")
        shutil.rmtree(out, ignore_errors=True)
        for page in self.pages.values():
            self._write(out, page.path, page.title, self._render(page), page.language)
        for path in sorted(self.linked):
            place = out / site_path(path)
            if site_path(path) == path:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.root / path, place)
            else:
                self._write(out, path, str(path), source(self.root / path, str(path)), "en")
        (out / STYLE.name).write_text(style(), encoding="utf-8")

    def _render(self, page: Page) -> str:
        """The body of a page: headings get names, links lead to the site's own files."""
        taken: dict[str, int] = {}
        for heading, inline in zip(page.tokens, page.tokens[1:], strict=False):
            if heading.type == "heading_open":
                name = anchor(words_of(inline))
                again = taken[name] = taken.get(name, -1) + 1
                heading.attrSet("id", f"{name}-{again}" if again else name)
        for inline in page.tokens:
            inline.children = [*with_breaks(inline.children or [])]
            for token in inline.children:
                for attribute in {"link_open": ["href"], "image": ["src"]}.get(token.type, []):
                    token.attrSet(attribute, self._moved(page.path, str(token.attrGet(attribute))))
        markdown = parser()
        return str(markdown.renderer.render(page.tokens, markdown.options, {}))

    def _moved(self, page: PurePosixPath, link: str) -> str:
        """A link of a page as the site needs it; one to nowhere stays as it is, for a check to find."""
        if re.match(r"[a-z]+:|#", link):
            return link
        file, hash_, fragment = unquote(link).partition("#")
        target = PurePosixPath(os.path.normpath(page.parent / file))
        if not (self.root / target).is_file():
            return link
        if target not in self.pages:
            self.linked.add(target)
        return relative(site_path(target), page) + hash_ + fragment

    def _write(self, out: Path, path: PurePosixPath, title: str, body: str, language: str) -> None:
        place = out / site_path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        text = PAGE.substitute(
            language=language,
            title=escape(title),
            up="../" * (len(path.parts) - 1),
            style=STYLE.name,
            navigation=self._navigation(path),
            body=body,
        )
        place.write_text(text, encoding="utf-8")

    def _navigation(self, here: PurePosixPath) -> str:
        """The contents, with the page that is open marked, and its other language."""
        named = {PurePosixPath(path) for paths in CONTENTS.values() for path in paths}
        english = [path for path, page in self.pages.items() if page.language == "en"]
        parts = []
        if here in self.pages and (other := self.pages[here].other) in self.pages:
            language = self.pages[other].language
            href = relative(site_path(other), here)
            parts.append(f'<p><a href="{href}" lang="{language}">{LANGUAGES[language]}</a></p>')
        chapters = {title: [PurePosixPath(path) for path in paths] for title, paths in CONTENTS.items()}
        chapters[ELSEWHERE] = [path for path in english if path not in named]
        for title, paths in chapters.items():
            if there := [path for path in paths if path in self.pages]:
                parts.append(f"<h2>{title}</h2>{self._list(there, here)}")
        return "\n".join(parts)

    def _list(self, paths: Iterable[PurePosixPath], here: PurePosixPath) -> str:
        items = []
        for path in map(self._in_chinese, paths) if here.name.endswith(CHINESE) else paths:
            current = ' aria-current="page"' if path == here else ""
            title = escape(self.pages[path].title)
            items.append(f'<li><a href="{relative(site_path(path), here)}"{current}>{title}</a></li>')
        return f"<ul>{''.join(items)}</ul>"

    def _in_chinese(self, path: PurePosixPath) -> PurePosixPath:
        """The Chinese page, where there is one."""
        return self.pages[path].other if self.pages[path].other in self.pages else path


def relative(target: PurePosixPath, page: PurePosixPath) -> str:
    """From a page to a file, both from the root."""
    return Path(os.path.relpath(target, page.parent)).as_posix()


def source(file: Path, title: str) -> str:
    """A file of the project as it is, with coloured code and a name for each line."""
    try:
        lexer = get_lexer_for_filename(file.name)
    except ClassNotFound:
        lexer = TextLexer()
    text = file.read_text(encoding="utf-8")
    return f"<h1>{escape(title)}</h1>\n{highlight(text, lexer, HtmlFormatter(linespans='L'))}"


def style() -> str:
    """The style sheet, with the colours of code for light and for dark."""
    light, dark = (HtmlFormatter(style=name).get_style_defs("pre") for name in ("friendly", "github-dark"))
    sheet = STYLE.read_text(encoding="utf-8")
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n{sheet}"


def main() -> None:
    """Build it, and say where."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", nargs="?", type=Path, default=ROOT / OUT, help="the folder to write")
    parser.add_argument("--no-gallery", action="store_true", help="leave out the saved pages of models")
    options = parser.parse_args()
    out, site, saved = options.out, Site(ROOT), []
    if not options.no_gallery:
        sys.path.insert(0, str(ROOT))
        from tools.gallery import FOLDER, gallery_page, saved_pages

        saved = list(saved_pages())
        site.add(f"{FOLDER}/README.md", gallery_page(saved, "en"))
        site.add(f"{FOLDER}/README{CHINESE}", gallery_page(saved, "zh"))
    site.build(out)
    for each in saved:
        each.write(out / FOLDER)
    print(f"{sum(1 for _ in out.rglob('*.html'))} pages: open {out / 'index.html'}")


if __name__ == "__main__":
    main()
