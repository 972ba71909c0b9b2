"""The first screen of models that answer and converse, in a real browser: it says what they do."""

import json

import pytest

import regard
from tests.browser.served import at, page_text
from tests.browser.waiting import drawn, until
from tests.serve.field_models import save_field_models
from tests.serve.running import serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return save_field_models(tmp_path_factory.mktemp("fields"))


@pytest.fixture(scope="module")
def server(folders):
    with serving(folders) as found:
        yield found


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_screen_says_what_the_model_does(opened, server, folders, language):
    titles = [page_text(key, language) for key in ("answer", "converse")]
    tab = opened(at(server, lang=language, text="who sat?\nthe cat sat on the mat"))
    assert tab.locator("h1").inner_text() == tab.locator("#screen-translate .name").inner_text() == titles[0]
    wanted = regard.load(folders[0]).translate("who sat? the cat sat on the mat").text
    until(tab, f"document.querySelector('#output').textContent.trim() === {json.dumps(wanted.strip())}")
    drawn(tab, lambda: tab.select_option("#way", label="talks"))
    assert tab.locator("h1").inner_text() == titles[1]
    drawn(tab, lambda: tab.click("#screen-api"))
    assert tab.locator("#copy-libretranslate").count() == 0  # whose clients name languages
