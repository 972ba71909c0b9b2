"""How a language model goes on from a text while it is changed inside."""

from __future__ import annotations

from collections.abc import Sequence

from regard.engine.generator import Generator
from regard.engine.options import GenerateOptions
from regard.look.interventions.apply import intervened, replacing
from regard.look.interventions.interventions import Intervention, check
from regard.model.language_model import LanguageModel
from regard.model.taps import recording


def continued(
    generator: Generator, prompt: list[int], most: int, interventions: Sequence[Intervention] = ()
) -> list[int]:
    """The likeliest token after those of a prompt, then the next: so many at most, or until the text ends.

    Raises:
        RequestError: the text would grow longer than the model was trained for, or the interventions do not
            fit the model.
    """
    check(interventions, generator.model.config, 0, None)
    watched = intervened(generator.model, interventions)
    assert isinstance(watched, LanguageModel), "an intervention keeps the architecture"
    change = replacing(interventions, watched.config)
    options = GenerateOptions(max_tokens=most, temperature=0)
    with recording(watched, change, keep=lambda _: False):
        return Generator(watched, generator.subwords).ids(prompt, options)
