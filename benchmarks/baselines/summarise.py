"""The baseline of summaries: the first sentences of the document, by ROUGE.

python -m benchmarks.baselines.summarise FILE.jsonl … [--input text] [--output summary]
"""

import argparse

from regard.data.reading.templates import read_pairs
from regard.engine.document.sentences import sentences
from regard.scores.texts import score_summaries

LEADS = (1, 2, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--input", default="text")
    parser.add_argument("--output", default="summary")
    asked = parser.parse_args()
    templates = f"{{{asked.input}}}", f"{{{asked.output}}}"
    for file in asked.files:
        documents, references = zip(*read_pairs(file, templates), strict=True)
        for n in LEADS:
            outputs = [" ".join(sentences(document)[:n]) for document in documents]
            print(f"{file}: lead-{n}: {score_summaries(outputs, references)}")


if __name__ == "__main__":
    main()
