"""What many people write first: CTranslate2 behind a FastAPI handler, one request at a time.

python -m benchmarks.peers.plain_server MODEL PORT
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import ctranslate2
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from regard.bundle.bundle import describe_bundle
from regard.bundle.manifest import SUBWORDS
from regard.engine.loading import model_folder
from regard.exchange.ctranslate2.cache import converted
from regard.exchange.ctranslate2.convert import VOCABULARY
from regard.host import default_threads
from regard.text.vocabularies.subwords import Subwords


class Asked(BaseModel):
    text: str


def application(model: Path) -> FastAPI:
    folder = model_folder(model)
    subwords = Subwords((folder / SUBWORDS).read_bytes())
    path = converted(folder, "int8", bos=subwords.bos_id, eos=subwords.eos_id)
    tokens: list[str] = json.loads((path / VOCABULARY).read_bytes())
    ids = {token: i for i, token in enumerate(tokens)}
    translator = ctranslate2.Translator(str(path), intra_threads=default_threads(), compute_type="int8")
    decoding = describe_bundle(folder).decoding
    app, one_at_a_time = FastAPI(), threading.Lock()

    @app.post("/api/v1/translate")
    def translate(asked: Asked) -> dict[str, str]:
        sentences = [[tokens[i] for i in encoded] for encoded in subwords.encode(asked.text.split("\n"))]
        with one_at_a_time:
            results = translator.translate_batch(sentences, beam_size=decoding.beam_size)
        lines = (subwords.decode([ids[token] for token in each.hypotheses[0]]) for each in results)
        return {"text": "\n".join(lines)}

    return app


if __name__ == "__main__":
    uvicorn.run(application(Path(sys.argv[1])), port=int(sys.argv[2]), log_level="warning")
