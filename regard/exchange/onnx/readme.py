"""What people are told who find an ONNX folder, and the program that shows them how to run it."""

from __future__ import annotations

from importlib.resources import files

from regard.config import ModelConfig
from regard.config.model import Architecture
from regard.version import __version__

EXAMPLES: dict[Architecture, str] = {
    "encoder-decoder": "translate",
    "decoder": "generate",
    "encoder": "classify",
}

GRAPHS: dict[Architecture, str] = {
    "encoder-decoder": """\
- `encoder.onnx` reads the inputs, each ending in `eos_id`. It gives the memory, and the keys and values that
  the decoder's layers take of it.
- `decoder.onnx` reads what is new of the outputs, which begin with `bos_id`, together with the keys and
  values of what came before (`past.*`, of length 0 at first) and of the memory. It gives logits, and the keys
  and values of all that it has read so far (`present.*`): the next step's `past.*`.
""",
    "decoder": """\
- `decoder.onnx` reads what is new of a text, which begins with `bos_id` if `begins_with_bos` says so,
  together with the keys and values of what came before (`past.*`, of length 0 at first). It gives logits, and
  the keys and values of all that it has read so far (`present.*`): the next step's `past.*`.
""",
    "encoder": """\
- `classifier.onnx` reads texts, each between `cls_id` and `closing_ids` and with gaps at its end alone, and
  gives the logits of the labels; where `several_labels` says so, each has a probability by itself.
""",
}

PROGRAM = """\
## Run it

```bash
pip install numpy onnxruntime sentencepiece
python example.py TEXT
```

`example.py`, which needs nothing of regard:

```python
{program}```
"""

FOREIGN = """\
`subwords.model` is the vocabulary that the model brought from elsewhere, as JSON; texts are cut by the
library that it came with.
"""


def example(architecture: Architecture) -> str:
    """A program that runs a folder of such a model with onnxruntime and sentencepiece alone."""
    folder = files("regard.exchange.onnx.examples")
    return (folder / f"{EXAMPLES[architecture]}.py").read_text(encoding="utf-8")


def readme(config: ModelConfig, program: str) -> str:
    """The page, as Markdown; `program` is empty where there is none."""
    return f"""\
# An ONNX model

Written by regard {__version__}. `config.json` has the special ids and, for every graph, names, types and
shapes of what goes in and comes out; sizes by name may be any, from one run to the next.

{GRAPHS[config.architecture]}
Rows of one batch may have different lengths. `attention_mask` is 1 where a token is and 0 where there is
none, for all tokens from the first on, those of earlier steps too; a token's position is the number of tokens
before it. A row may have {config.max_length:,} tokens.

{PROGRAM.format(program=program) if program else FOREIGN}"""
