"""A model folder translates lines as its engines do, and refuses what it cannot."""

import pytest

from regard.bundle import load_bundle
from regard.config import DecodingConfig
from regard.loaded import load
from regard.tasks.pairs import decoded
from regard.text.vocabularies.subwords import Subwords
from tests.refusals import refused
from tests.tasks.translators import SOURCES, translator


def by_torch(folder, subwords, lines, beam_size):
    decoding = DecodingConfig(beam_size=beam_size, length_penalty=0.4, extra_length=2)
    vocabulary = Subwords(subwords)
    inputs = [tuple(ids.tolist()) for ids in vocabulary.encode(lines)]
    return decoded(load_bundle(folder).model, vocabulary, inputs, decoding)


def test_lines_are_translated_as_the_folder_says_or_with_other_beams(tmp_path, subwords):
    folder = translator(tmp_path / "model", subwords)
    lines = [SOURCES[0], "", *SOURCES[1:5]]
    made = load(folder, engine="torch").translate_lines(lines)
    assert made.lines == by_torch(folder, subwords, lines, beam_size=3)
    assert made.how == "torch, float32, beam 3, length penalty 0.4"
    assert made.lines[1] == ""
    greedy = load(folder, engine="torch").translate_lines(lines, beam_size=1)
    assert greedy.lines == by_torch(folder, subwords, lines, beam_size=1)
    assert greedy.lines != made.lines, "these weights tell one beam from three"


def test_auto_takes_ctranslate2_where_it_can_express_the_model(tmp_path, subwords):
    plain = translator(tmp_path / "plain", subwords)
    assert load(plain).translate_lines(SOURCES[:2]).how.startswith("ctranslate2, int8, beam 3")
    additive = translator(tmp_path / "additive", subwords, similarity="additive")
    assert load(additive).translate_lines(SOURCES[:2]).how.startswith("torch, float32")
    with refused("unusable_engine", "similarity"):
        load(additive, engine="ctranslate2")


def test_what_cannot_translate_is_refused(tmp_path, subwords):
    with refused("no_vocabulary", "mute"):
        load(translator(tmp_path / "mute", None))
    with refused("wrong_task", "writer"):
        load(translator(tmp_path / "writer", subwords, architecture="decoder")).translate_lines(SOURCES)


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_line_that_is_too_long_is_translated_in_parts_and_counted(tmp_path, subwords, engine):
    folder = translator(tmp_path / "model", subwords)
    made = load(folder, engine=engine).translate_lines([SOURCES[0], "many a dog " * 50])
    assert made.lines[0] == load(folder, engine=engine).translate_lines(SOURCES[:1]).lines[0]
    assert made.lines[1]
    assert made.how.endswith(", 1 line too long and split")
