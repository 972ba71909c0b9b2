"""The baseline of classification: TF-IDF with logistic regression, tuned on the validation set.

    python -m benchmarks.baselines.classify DATA/classification/sst2 …

A folder has train, valid and test as NAME.tsv or NAME.tsv.xz, label<TAB>text. Features are words and pairs
of words, or runs of one to four characters; validation decides, also how strongly weights are held down.
"""

import sys
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import Pipeline, make_pipeline

from regard.data.reading.labelled import labelled_corpus

STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0)
FEATURES = (
    {"analyzer": "word", "ngram_range": (1, 2)},
    {"analyzer": "char", "ngram_range": (1, 4)},
)


def main() -> None:
    for folder in map(Path, sys.argv[1:]):
        sets = {name: read(folder, name) for name in ("train", "valid", "test")}
        best = max(tried(sets["train"], sets["valid"]), key=lambda each: each[0])
        valid, model, settings = best
        labels, texts = sets["test"]
        given = model.predict(texts)
        accuracy = sum(a == b for a, b in zip(given, labels, strict=True)) / len(labels)
        macro = f1_score(labels, given, average="macro")
        scores = f"accuracy {accuracy:.2%}, macro-F1 {macro:.2%}"
        print(f"{folder.name}: test {scores} (valid accuracy {valid:.2%}; {settings})")


def read(folder: Path, name: str) -> tuple[list[str], list[str]]:
    """Labels and texts of one set."""
    found = [path for path in (folder / f"{name}.tsv", folder / f"{name}.tsv.xz") if path.exists()]
    labels, texts = zip(*labelled_corpus(found[0]).rows(), strict=True)
    return list(labels), list(texts)


def tried(
    train: tuple[list[str], list[str]], valid: tuple[list[str], list[str]]
) -> list[tuple[float, Pipeline, str]]:
    """Every setting with its accuracy on the validation set."""
    found = []
    for features in FEATURES:
        for strength in STRENGTHS:
            model = make_pipeline(
                TfidfVectorizer(sublinear_tf=True, min_df=2, **features),
                LogisticRegression(C=strength, max_iter=1000),
            )
            model.fit(train[1], train[0])
            found.append((model.score(valid[1], valid[0]), model, f"{features['analyzer']}, C={strength}"))
    return found


if __name__ == "__main__":
    main()
