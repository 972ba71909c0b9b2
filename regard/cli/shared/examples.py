"""Examples of each verb, printed at the end of its help."""

EXAMPLES = {
    "train": (
        "regard train corpus.zh corpus.en",
        "regard train pairs.tsv --columns zh,en --preset base --out runs/zh-en",
        "regard train --task classify labelled.tsv --out runs/mood",
    ),
    "translate": (
        "regard translate 猫坐在垫子上。",
        "regard translate runs/zh-en < corpus.zh > corpus.en",
    ),
    "look": (
        "regard look 猫坐在垫子上。 --view alignment",
        "regard look runs/zh-en 猫坐在垫子上。 -o cat.html",
    ),
    "serve": (
        "regard serve",
        "regard serve runs/zh-en --host 0.0.0.0 --keys keys.jsonl",
    ),
    "evaluate": (
        "regard evaluate runs/zh-en test.zh test.en",
        "regard evaluate test.zh test.en --outputs before.en --outputs after.en",
    ),
    "score": ("regard score runs/zh-en test.zh test.en",),
    "generate": ("regard generate runs/plays 'First Citizen:' --temperature 0.8",),
    "classify": (
        "regard classify runs/mood 'a fine film'",
        "regard classify --model runs/mood-1 --model runs/mood-2 < films.txt",
    ),
    "summarise": (
        "regard summarise runs/news 'It rained all night in Paris. In the morning the river was high.'",
        "regard summarise runs/news < articles.jsonl",
    ),
    "answer": ("regard answer runs/squad 'Who sat?' --context 'The cat sat on the mat.'",),
    "chat": ("regard chat runs/talks", "regard chat runs/talks < conversations.jsonl"),
    "experiment": ("regard experiment scale",),
    "export": ("regard export runs/zh-en zh-en-ct2 --to ctranslate2 --quantisation int8",),
    "import": ("regard import opus-mt-en-de models/en-de",),
    "average": ("regard average runs/zh-en/checkpoints/* --out mean",),
    "info": ("regard info runs/zh-en",),
    "config": ("regard config --preset small --set model.dropout=0.3",),
    "doctor": ("regard doctor",),
}


def examples_help(verb: str) -> str:
    """The examples of a verb, one per line."""
    # "\b" keeps the help formatter from joining the lines of a paragraph.
    return "\b\nExamples:\n" + "\n".join(f"  {words}" for words in EXAMPLES[verb])
