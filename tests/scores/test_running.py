"""A model folder translates lines as its engines do, and refuses what it cannot."""

import pytest

from regard.bundle import load_bundle
from regard.config import DecodingConfig
from regard.errors import BundleError, ConfigError
from regard.scores.running import translations
from regard.scores.testing import translate
from regard.text.vocabularies.subwords import Subwords
from tests.scores.translators import SOURCES, translator


def by_torch(folder, subwords, lines, beam_size):
    decoding = DecodingConfig(beam_size=beam_size, length_penalty=0.4, extra_length=2)
    vocabulary = Subwords(subwords)
    inputs = [tuple(ids.tolist()) for ids in vocabulary.encode(lines)]
    return translate(load_bundle(folder).model, vocabulary, inputs, decoding)


def test_lines_are_translated_as_the_folder_says_or_with_other_beams(tmp_path, subwords):
    folder = translator(tmp_path / "model", subwords)
    lines = [SOURCES[0], "", *SOURCES[1:5]]
    made = translations(folder, lines, engine="torch")
    assert made.lines == by_torch(folder, subwords, lines, beam_size=3)
    assert made.how == "torch, float32, beam 3, length penalty 0.4"
    assert made.lines[1] == ""
    greedy = translations(folder, lines, engine="torch", beam_size=1)
    assert greedy.lines == by_torch(folder, subwords, lines, beam_size=1)
    assert greedy.lines != made.lines, "these weights tell one beam from three"


def test_auto_takes_ctranslate2_where_it_can_express_the_model(tmp_path, subwords):
    plain = translator(tmp_path / "plain", subwords)
    assert translations(plain, SOURCES[:2]).how.startswith("ctranslate2, int8, beam 3")
    additive = translator(tmp_path / "additive", subwords, similarity="additive")
    assert translations(additive, SOURCES[:2]).how.startswith("torch, float32")
    with pytest.raises(ConfigError, match="similarity"):
        translations(additive, SOURCES[:2], engine="ctranslate2")


def test_what_cannot_translate_is_refused(tmp_path, subwords):
    with pytest.raises(BundleError, match=r"no subwords\.model"):
        translations(translator(tmp_path / "mute", None), SOURCES)
    with pytest.raises(ConfigError, match="of the decoder alone"):
        translations(translator(tmp_path / "writer", subwords, architecture="decoder"), SOURCES)


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_line_that_is_too_long_is_translated_in_parts_and_counted(tmp_path, subwords, engine):
    folder = translator(tmp_path / "model", subwords)
    made = translations(folder, [SOURCES[0], "many a dog " * 50], engine=engine)
    assert made.lines[0] == translations(folder, SOURCES[:1], engine=engine).lines[0]
    assert made.lines[1]
    assert made.how.endswith(", 1 of the lines too long and translated in parts")
