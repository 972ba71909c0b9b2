"""Options are keyword arguments with types and defaults, for people and for type checkers."""

from dataclasses import fields
from inspect import Parameter, signature
from typing import get_type_hints

import pytest

from regard.config import TaskConfig
from regard.engine.options import (
    ClassifyKeywords,
    ClassifyOptions,
    GenerateKeywords,
    GenerateOptions,
    TranslateKeywords,
    TranslateOptions,
)
from regard.tasks.loaded import LoadedModel
from regard.tasks.loaded.classifier import LoadedClassifier
from regard.tasks.loaded.generator import LoadedGenerator
from regard.tasks.loaded.translator import LoadedTranslator
from regard.text.vocabularies.subwords import Subwords, learn_subwords
from tests.engine.echo import Echo, translator_with
from tests.refusals import refused


@pytest.mark.parametrize(
    ("keywords", "options"),
    [
        (TranslateKeywords, TranslateOptions),
        (GenerateKeywords, GenerateOptions),
        (ClassifyKeywords, ClassifyOptions),
    ],
)
def test_type_checkers_know_the_same_options(keywords, options):
    assert get_type_hints(keywords) == get_type_hints(options)
    assert not keywords.__required_keys__


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        *((verb, TranslateOptions) for verb in ("translate", "stream", "respond", "translator")),
        *((verb, GenerateOptions) for verb in ("generate", "continue_text")),
        ("classify", ClassifyOptions),
    ],
)
@pytest.mark.parametrize("kind", [LoadedModel, LoadedTranslator, LoadedGenerator, LoadedClassifier])
def test_help_and_notebooks_show_every_option_with_its_default(kind, verb, options):
    parameters = signature(getattr(kind, verb)).parameters.values()
    shown = {each.name: each.default for each in parameters if each.kind is Parameter.KEYWORD_ONLY}
    assert shown == {field.name: field.default for field in fields(options)}
    assert not any(each.kind is Parameter.VAR_KEYWORD for each in parameters)


@pytest.fixture(scope="module")
def model():
    return translator_with(Echo, Subwords(learn_subwords(["一二三", "one two three"] * 20, 300)))


def test_an_option_that_there_is_not_is_refused_with_those_that_there_are(model):
    for verb, *given in (("translate", "一"), ("stream", "一"), ("respond", "一"), ("translator",)):
        with refused("unknown_option", "beam_siez", "beam_size", "check_numbers"):
            getattr(model, verb)(*given, beam_siez=3)
    for name, meant in (("beam_siez", "beam_size"), ("target", "to"), ("glosary", "glossary")):
        with refused("unknown_option", f"no option {name!r}", f"did you mean {meant}?"):
            model.translate("一", **{name: 3})


@pytest.mark.parametrize("verb", ["generate", "continue_text", "classify", "generator", "classifier"])
def test_the_verbs_of_other_tasks_say_which_one_to_use(model, verb):
    with refused("wrong_task", "use translate"):
        getattr(model, verb)("a")


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (TaskConfig(), "translate, 0 parameters"),
        (TaskConfig(source="zh", target="en"), "translate, zh to en, 0 parameters"),
        (
            TaskConfig(source="zh", target="en", both_directions=True),
            "translate, zh to en and en to zh, 0 parameters",
        ),
        (TaskConfig(name="converse"), "chat, 0 parameters"),
    ],
)
def test_a_loaded_model_says_what_it_is(model, task, words):
    model.task = task
    assert repr(model) == f"_WithoutWeights(echo: {words})"
