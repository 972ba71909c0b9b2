"""A model folder as an ONNX folder: its graphs, what they read and write, and a program that runs them."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from regard.bundle.bundle import Bundle, load_bundle, read_labels
from regard.bundle.manifest import SUBWORDS
from regard.bundle.writing import check_replaceable, write_folder
from regard.errors import BundleError, ConfigError
from regard.exchange.onnx.graphs import ClassifierGraph, DecoderGraph, EncoderGraph
from regard.exchange.onnx.ports import Interface, Port, Ports, flat, interfaces
from regard.exchange.onnx.readme import example, readme
from regard.exchange.verification import Verified, compared, log_probs, probe
from regard.text.vocabularies import read_vocabulary
from regard.text.vocabularies.subwords import Subwords
from regard.text.vocabularies.vocabulary import Vocabulary
from regard.version import __version__

SETTINGS, README, EXAMPLE = "config.json", "README.md", "example.py"

OPSET = 18
"""The operators that torch's exporter thinks in; runtimes since 2023 have them all."""

POSITIONS = ("sinusoidal", "learned", "rotary", "none")
"""Positions whose computation the graphs contain."""

ONE_FILE = 1 << 30
"""Bytes of weights that go into the graph's own file; more lie beside it, since no graph may exceed 2 GiB."""

TRACED = {"batch": 2, "source": 3, "length": 5, "past": 7, "past + length": 12}
"""Sizes at which a graph is drawn. None is 0 or 1, which the exporter would take to be meant."""


def write_onnx(model: Path, out: Path) -> Verified:
    """Write a model folder as an ONNX folder, run it with onnxruntime, and compare the two.

    Raises:
        BundleError: the model folder is damaged or has no subwords; something is in the way of the new one;
            or the new one computes something else.
        ConfigError: a library that is needed is not installed.
    """
    for library in ("onnx", "onnxscript", "onnxruntime"):
        if find_spec(library) is None:
            raise ConfigError(f"{library} is needed to write ONNX: pip install 'regard[exchange]'")
    from regard.exchange.onnx.running import onnx_log_probs

    check_replaceable(out.resolve(), overwrite=False)  # or it would be refused after all the work
    bundle = load_bundle(model)
    if (positions := bundle.config.positions) not in POSITIONS:
        known = ", ".join(POSITIONS)
        problem = f'model.positions = "{positions}" cannot be written as ONNX graphs, only {known} can'
        raise ConfigError(problem, str(model), code="not_expressible")
    if bundle.subwords is None:
        raise BundleError(f"has no {SUBWORDS}, and a graph does not know what its ids mean", str(model))
    vocabulary = read_vocabulary(bundle.subwords)
    write_folder(out.resolve(), _files(bundle, vocabulary), overwrite=False)
    given, ends = probe(bundle.config), {"bos": vocabulary.bos_id, "eos": vocabulary.eos_id}
    ours, theirs = log_probs(bundle.model, given, **ends), onnx_log_probs(out, bundle.config, given, **ends)
    return compared("onnxruntime", given, ours, theirs, exact=True)


def _files(bundle: Bundle, vocabulary: Vocabulary) -> dict[str, bytes]:
    """The content of every file of the folder, by name."""
    bundle.model.float()
    files = {SUBWORDS: vocabulary.model}
    for name, interface in interfaces(bundle.config).items():
        files |= exported(_graph(name, bundle.model), name, interface)
    files[SETTINGS] = (
        json.dumps(_settings(bundle, vocabulary), indent=1, ensure_ascii=False) + "\n"
    ).encode()
    # Other people's vocabularies are read by other people's libraries.
    program = example(bundle.config.architecture) if isinstance(vocabulary, Subwords) else ""
    files[README] = readme(bundle.config, program).encode()
    return files | ({EXAMPLE: program.encode()} if program else {})


def _graph(name: str, model: Any) -> nn.Module:
    graphs = {"encoder": EncoderGraph, "decoder": DecoderGraph, "classifier": ClassifierGraph}
    return graphs[name](model).eval()


def _settings(bundle: Bundle, vocabulary: Vocabulary) -> dict[str, Any]:
    """What a program must know that runs the graphs."""
    config = bundle.config
    found: dict[str, Any] = {
        "regard": __version__,
        "architecture": config.architecture,
        "task": bundle.task.name,
        "max_length": config.max_length,
        "subwords": SUBWORDS,
    }
    if config.architecture == "encoder":
        labels = read_labels(bundle.folder, config.n_labels)
        found |= {"cls_id": vocabulary.cls_id, "closing_ids": vocabulary.closing, "labels": labels}
        found["several_labels"] = bundle.task.label_separator is not None
    else:
        found |= {"bos_id": vocabulary.bos_id, "eos_id": vocabulary.eos_id}
    if config.architecture == "decoder":
        found["begins_with_bos"] = vocabulary.begins_texts
    if config.architecture == "encoder-decoder":
        found["tags"] = {language: vocabulary.tag_id(language) for language in vocabulary.languages}
        found["extra_length"] = bundle.decoding.extra_length
    graphs = {name: _ports(interface) for name, interface in interfaces(config).items()}
    return found | {"graphs": graphs}


def _ports(interface: Interface) -> dict[str, Any]:
    sides = {"inputs": interface.inputs, "outputs": interface.outputs}
    told = {
        side: {port.name: {"dtype": port.dtype, "shape": port.shape} for port in flat(ports)}
        for side, ports in sides.items()
    }
    return {"opset": OPSET, **told}


def exported(graph: nn.Module, name: str, interface: Interface) -> dict[str, bytes]:
    """A graph as files, by name: `NAME.onnx`, and its weights beside it where they are many."""
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
        assert program is not None, "only the exporter's older half gives nothing back"
        for node in program.model.graph:
            node.metadata_props.clear()  # lines of source files, with their places on this machine
        program.save(Path(folder) / f"{name}.onnx", external_data=n_bytes > ONE_FILE)
        return {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}


def _arguments(ports: Ports) -> tuple[Any, ...]:
    """Tensors of the sizes at which a graph is drawn; what is in them does not matter."""
    return tuple(_tensor(each) if isinstance(each, Port) else _arguments(each) for each in ports)


def _tensor(port: Port) -> Tensor:
    shape = [size if isinstance(size, int) else TRACED[size] for size in port.shape]
    return torch.ones(shape, dtype=getattr(torch, port.dtype))


def _dimensions(ports: Ports) -> tuple[Any, ...]:
    """Which dimensions may be of any size, and their names."""
    return tuple(_dimensions(each) if not isinstance(each, Port) else _names(each) for each in ports)


def _names(port: Port) -> dict[int, str]:
    return {i: size for i, size in enumerate(port.shape) if isinstance(size, str)}


@contextmanager
def _quietly() -> Iterator[None]:
    """Without what torch's exporter says of itself, and of torchvision, which nobody asked for."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
