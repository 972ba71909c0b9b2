"""What pyproject.toml cannot say: the README as it is read away from the repository, as on PyPI."""

import re
from pathlib import Path

from setuptools import setup

INSIDE = r"\((?!https?:|#)[^)]*\)"
"""Where a link into the repository leads."""
LIST_OF_PAGES = "\n## Documentation\n"


def away_from_home(readme: str) -> str:
    """Without what lies in the repository: pictures, other pages, and where links within a sentence lead."""
    text = readme.partition(LIST_OF_PAGES)[0]
    text = re.sub(rf"^!?\[[^]]*]{INSIDE}\n+", "", text, flags=re.MULTILINE)
    return re.sub(rf"\[([^]]*)]{INSIDE}", r"\1", text)


if __name__ == "__main__":
    readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    setup(long_description=away_from_home(readme), long_description_content_type="text/markdown")
