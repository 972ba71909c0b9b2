"""Take the picture of the README: the page of one translation, in Chromium.

    python tools/picture.py MODEL TEXT docs/pictures/page.png [--language zh]

MODEL is a run or model folder. The picture is of the screen with all heads.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import regard

WIDTH, HEIGHT = 1100, 620


def main() -> None:
    """Look, save the page, photograph it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("text")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--language", choices=["en", "zh"], default="en")
    options = parser.parse_args()
    model = regard.load(options.model)
    trace = model.look(options.text, beam_size=4)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder, "page.html")
        trace.save(page, aligning=model.aligning_heads)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        tab.goto(f"{page.as_uri()}#screen=map&kind=cross&theme=light&lang={options.language}")
        tab.locator("[id^=thumb-cross]").first.wait_for()
        tab.screenshot(path=options.picture)
        browser.close()


if __name__ == "__main__":
    main()
