"""Options of Python by the names that the command line has for them."""

from regard.errors import RegardError, with_options

FLAGS = {
    "beam_size": "--beam",
    "source": "--from",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            "device",
            "glossary",
            "keep",
            "max_tokens",
            "min_p",
            "n_best",
            "past_length",
            "prefix",
            "quantisation",
            "sample",
            "seed",
            "temperature",
            "threshold",
            "to",
            "too_long",
            "top_k",
            "top_p",
        )
    },
}
"""What has no flag, such as `extra_length`, is a setting of the model folder, and keeps its name."""


def with_flags(error: RegardError | str) -> str:
    """What an error says, with a flag where it names an option."""
    return with_options(str(error), lambda name, value: f"{FLAGS.get(name, name)} {value}".strip())
