"""Take a picture of a screen of the page, in Chromium.

regard serve
python tools/picture.py "http://127.0.0.1:8000/#screen=map&theme=light" docs/pictures/page.png
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1100, 660
PATIENCE_MS = 120_000


def main() -> None:
    """Open the address, wait until the screen is complete, photograph it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("address")
    parser.add_argument("picture", type=Path)
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        tab.goto(options.address, wait_until="networkidle", timeout=PATIENCE_MS)
        tab.wait_for_timeout(1000)  # for what moves
        tab.screenshot(path=options.picture)
        browser.close()


if __name__ == "__main__":
    main()
