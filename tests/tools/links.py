"""Which links of a built site lead nowhere."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote


class Reader(HTMLParser):
    """The links of one page, and the names that others can link to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, _tag, attrs):
        found = dict(attrs)
        self.links += [found[name] for name in ("href", "src") if name in found]
        self.names |= {found["id"]} if "id" in found else set()


def dead_links(site: Path) -> Iterator[str]:
    """Links to files that are not in the site, and to headings that a page does not have.

    Other people's addresses are not asked for: a test that needs the network fails for reasons of its own.
    The state of a saved page (`#screen=map`) is no heading.
    """
    pages = {page.resolve(): Reader(page) for page in site.rglob("*.html")}
    for page, reader in pages.items():
        for link in reader.links:
            if "://" in link or link.startswith("mailto:"):
                continue
            file, _, name = unquote(link).partition("#")
            target = (page.parent / file).resolve() if file else page
            if not target.is_file():
                yield f"{page.relative_to(site.resolve())}: no file {link}"
            elif name and "=" not in name and target in pages and name not in pages[target].names:
                yield f"{page.relative_to(site.resolve())}: no heading {link}"
