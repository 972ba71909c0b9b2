"""Export a model folder to ONNX: graphs, their interface in `config.json`, and a program that runs them."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.bundle.bundle import Bundle, load_bundle, read_labels
from regard.bundle.manifest import SUBWORDS
from regard.bundle.writing import check_replaceable, write_folder
from regard.config import ModelConfig
from regard.config.model import Architecture
from regard.errors import BundleError, ConfigError
from regard.exchange.onnx.graphs import (
    ClassifierGraph,
    DecoderGraph,
    EncoderGraph,
    Interface,
    Port,
    Ports,
    flat,
    interfaces,
)
from regard.exchange.verification import ProbeSequences, Verified, compare, draw_probe, log_probs
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.subwords import Subwords
from regard.text.vocabularies.vocabulary import Vocabulary
from regard.version import __version__

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

SETTINGS, README, EXAMPLE = "config.json", "README.md", "example.py"

OPSET = 18
"""The operator set that torch's exporter translates to; runtimes since 2023 have all of it."""

POSITIONS = ("sinusoidal", "learned", "rotary", "none")
"""Positions whose computation the graphs contain."""

ONE_FILE = 1 << 30
"""Most bytes of weights inside a graph's file; more go into a file beside it, as a graph is at most 2 GiB."""

TRACED = {"batch": 2, "source": 3, "length": 5, "past": 7, "past + length": 12}
"""Sizes at which a graph is traced. The exporter would treat 0 and 1 as constants."""


def write_onnx(model: Path, out: Path) -> Verified:
    """Write a model folder as an ONNX folder, and compare it with the original in onnxruntime.

    Raises:
        BundleError: the model folder is damaged or has no subwords; `out` exists; or the exported model
            computes something else.
        ConfigError: a library is not installed.
    """
    for library in ("onnx", "onnxscript", "onnxruntime"):
        if find_spec(library) is None:
            problem = f"ONNX export needs {library}: pip install 'regard[exchange]'"
            raise ConfigError(problem, code="missing_library")
    check_replaceable(out.resolve(), overwrite=False)  # refuse now rather than after the export
    bundle = load_bundle(model)
    if (positions := bundle.config.positions) not in POSITIONS:
        known = ", ".join(POSITIONS)
        problem = f'model.positions = "{positions}" cannot be written as ONNX graphs, only {known} can'
        raise ConfigError(problem, str(model), code="not_expressible")
    if bundle.subwords is None:
        raise BundleError(f"has no {SUBWORDS}, so its ids mean nothing", str(model), code="missing_file")
    vocabulary = read_vocabulary(bundle.subwords)
    write_folder(out.resolve(), _files(bundle, vocabulary), overwrite=False)
    probe, ends = draw_probe(bundle.config), {"bos": vocabulary.bos_id, "eos": vocabulary.eos_id}
    ours, theirs = log_probs(bundle.model, probe, **ends), onnx_log_probs(out, bundle.config, probe, **ends)
    return compare("onnxruntime", probe, ours, theirs, exact=True)


def _files(bundle: Bundle, vocabulary: Vocabulary) -> dict[str, bytes]:
    """The content of all files of the folder, by name."""
    bundle.model.float()
    files = {SUBWORDS: vocabulary.model}
    for name, interface in interfaces(bundle.config).items():
        files |= export_graph(_graph(name, bundle.model), name, interface)
    files[SETTINGS] = (
        json.dumps(_settings(bundle, vocabulary), indent=1, ensure_ascii=False) + "\n"
    ).encode()
    # The examples read SentencePiece models only.
    program = example(bundle.config.architecture) if isinstance(vocabulary, Subwords) else ""
    files[README] = readme(bundle.config, program).encode()
    return files | ({EXAMPLE: program.encode()} if program else {})


def _graph(name: str, model: Any) -> nn.Module:
    graphs = {"encoder": EncoderGraph, "decoder": DecoderGraph, "classifier": ClassifierGraph}
    return graphs[name](model).eval()


def _settings(bundle: Bundle, vocabulary: Vocabulary) -> dict[str, Any]:
    """`config.json`: everything that a program needs to run the graphs."""
    config = bundle.config
    settings: dict[str, Any] = {
        "regard": __version__,
        "architecture": config.architecture,
        "task": bundle.task.name,
        "max_length": config.max_length,
        "subwords": SUBWORDS,
    }
    if config.architecture == "encoder":
        labels = read_labels(bundle.folder, config.n_labels)
        settings |= {"cls_id": vocabulary.cls_id, "closing_ids": vocabulary.closing, "labels": labels}
        settings["several_labels"] = bundle.task.label_separator is not None
    else:
        settings |= {"bos_id": vocabulary.bos_id, "eos_id": vocabulary.eos_id}
    if config.architecture == "decoder":
        settings["begins_with_bos"] = vocabulary.begins_texts
    if config.architecture == "encoder-decoder":
        settings["tags"] = {language: vocabulary.tag_id(language) for language in vocabulary.languages}
        settings["extra_length"] = bundle.decoding.extra_length
    graphs = {name: _ports(interface) for name, interface in interfaces(config).items()}
    return settings | {"graphs": graphs}


def _ports(interface: Interface) -> dict[str, Any]:
    sides = {"inputs": interface.inputs, "outputs": interface.outputs}
    described = {
        side: {port.name: {"dtype": port.dtype, "shape": port.shape} for port in flat(ports)}
        for side, ports in sides.items()
    }
    return {"opset": OPSET, **described}


def export_graph(graph: nn.Module, name: str, interface: Interface) -> dict[str, bytes]:
    """The files of a graph, by name: `NAME.onnx`, and a second one for its weights if they are large."""
    n_bytes = sum(weight.numel() * weight.element_size() for weight in graph.parameters())
    with _quietly(), torch.no_grad(), TemporaryDirectory() as folder:
        program = torch.onnx.export(
            graph,
            _arguments(interface.inputs),
            input_names=[port.name for port in flat(interface.inputs)],
            output_names=[port.name for port in flat(interface.outputs)],
            dynamic_shapes=_dimensions(interface.inputs),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
        assert program is not None, "the dynamo exporter returns a program"
        for node in program.model.graph:
            node.metadata_props.clear()  # source lines, with paths of this machine
        program.save(Path(folder) / f"{name}.onnx", external_data=n_bytes > ONE_FILE)
        return {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}


def _arguments(ports: Ports) -> tuple[Any, ...]:
    """Tensors of the sizes at which a graph is traced; their values do not matter."""
    return tuple(_tensor(port) if isinstance(port, Port) else _arguments(port) for port in ports)


def _tensor(port: Port) -> Tensor:
    shape = [size if isinstance(size, int) else TRACED[size] for size in port.shape]
    return torch.ones(shape, dtype=getattr(torch, port.dtype))


def _dimensions(ports: Ports) -> tuple[Any, ...]:
    """The dimensions of variable size, and their names."""
    return tuple(_dimensions(port) if not isinstance(port, Port) else _names(port) for port in ports)


def _names(port: Port) -> dict[int, str]:
    return {i: size for i, size in enumerate(port.shape) if isinstance(size, str)}


@contextmanager
def _quietly() -> Iterator[None]:
    """Suppress the log lines and warnings of torch's exporter."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


# --- the README of the folder -----------------------------------------------------------------------------

EXAMPLES: dict[Architecture, str] = {
    "encoder-decoder": "translate",
    "decoder": "generate",
    "encoder": "classify",
}

GRAPHS: dict[Architecture, str] = {
    "encoder-decoder": """\
- `encoder.onnx` reads the inputs, which end with `eos_id`. It returns the memory, and the memory's keys and
  values for every layer of the decoder.
- `decoder.onnx` reads the new tokens of the outputs, which begin with `bos_id`, with the keys and values of
  the tokens before them (`past.*`, of length 0 at first) and of the memory. It returns logits, and the keys
  and values of all tokens so far (`present.*`), which are the `past.*` of the next step.
""",
    "decoder": """\
- `decoder.onnx` reads the new tokens of a text, which begins with `bos_id` if `begins_with_bos` is true, with
  the keys and values of the tokens before them (`past.*`, of length 0 at first). It returns logits, and the
  keys and values of all tokens so far (`present.*`), which are the `past.*` of the next step.
""",
    "encoder": """\
- `classifier.onnx` reads texts between `cls_id` and `closing_ids`, padded at the end, and returns the logits
  of the labels. If `several_labels` is true, every label has its own probability (sigmoid, not softmax).
""",
}

PROGRAM = """\
## Run it

```bash
pip install numpy onnxruntime sentencepiece
python example.py TEXT
```

`example.py`, which does not need regard:

```python
{program}```
"""

FOREIGN = """\
`subwords.model` is an imported vocabulary, as JSON; its own library splits texts into tokens.
"""


def example(architecture: Architecture) -> str:
    """A program that runs such a model with onnxruntime and sentencepiece alone."""
    program = files("regard.exchange.onnx") / "examples" / f"{EXAMPLES[architecture]}.py"
    return program.read_text(encoding="utf-8")


def readme(config: ModelConfig, program: str) -> str:
    """The README of the folder; `program` is empty if there is no example."""
    return f"""\
# An ONNX model

Written by regard {__version__}. `config.json` has the special ids and, for every graph, the names, types and
shapes of its inputs and outputs; dimensions that have a name are variable.

{GRAPHS[config.architecture]}
Rows of a batch may have different lengths. `attention_mask` is 1 for a token and 0 for padding; it covers all
tokens so far, those of earlier steps included. A token's position is the number of tokens before it. A row
has at most {config.max_length:,} tokens.

{PROGRAM.format(program=program) if program else FOREIGN}"""


# --- running the graphs -----------------------------------------------------------------------------------

Tensors = dict[str, np.ndarray]


def onnx_log_probs(
    folder: Path, config: ModelConfig, probe: ProbeSequences, *, bos: int, eos: int
) -> list[np.ndarray]:
    """The log-probabilities of a folder's graphs, as `verification.log_probs` gives those of a model."""
    from onnxruntime import InferenceSession

    if config.architecture == "encoder":
        (logits,) = InferenceSession(folder / "classifier.onnx").run(None, _padded(probe.inputs))
        return list(_log_softmax(logits[:, None]))
    memory: Tensors = {}
    if config.architecture == "encoder-decoder":
        encoder, inputs = InferenceSession(folder / "encoder.onnx"), [(*ids, eos) for ids in probe.inputs]
        read = _padded(inputs)
        names = [port.name for port in encoder.get_outputs()[1:]]
        memory = dict(zip(names, encoder.run(names, read), strict=True))
        memory["memory_mask"] = read["attention_mask"]
    outputs = [(bos, *ids) for ids in probe.outputs]
    logits = _decoded(InferenceSession(folder / "decoder.onnx"), _padded(outputs), memory)
    return [_log_softmax(rows[: len(ids)]) for rows, ids in zip(logits, outputs, strict=True)]


def _padded(sequences: Sequence[Sequence[int]]) -> Tensors:
    """Sequences padded to one length, and their mask."""
    longest = max(map(len, sequences))
    ids, mask = np.zeros((2, len(sequences), longest), np.int64)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def _decoded(decoder: InferenceSession, read: Tensors, memory: Tensors) -> np.ndarray:
    """Logits of every token; the first half of the tokens is read at once, the others one by one."""
    ids, mask = read["input_ids"], read["attention_mask"]
    n_rows, n_tokens = ids.shape
    ports = [port for port in decoder.get_inputs() if port.name.startswith("past.")]
    past = {port.name: np.zeros((n_rows, port.shape[1], 0, port.shape[3]), np.float32) for port in ports}
    pieces, start = [], 0
    for stop in range(n_tokens // 2, n_tokens + 1):
        new = {"input_ids": ids[:, start:stop], "attention_mask": mask[:, :stop]}
        logits, *present = decoder.run(None, {**new, **past, **memory})
        past, start = dict(zip(past, present, strict=True)), stop
        pieces.append(logits)
    return np.concatenate(pieces, axis=1)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))
