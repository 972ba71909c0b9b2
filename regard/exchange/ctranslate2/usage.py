"""What an exported CTranslate2 folder needs to be used without regard: its subword model, and a README."""

from __future__ import annotations

from regard.bundle.bundle import Description
from regard.errors import ConfigError
from regard.exchange.generation import their_penalty
from regard.text.languages import language_name
from regard.text.vocabularies.imported import MarianVocabulary, TokenizerVocabulary
from regard.text.vocabularies.subwords import Subwords, tag
from regard.text.vocabularies.vocabulary import Vocabulary

README = "README.md"
SUBWORD_MODEL, SOURCE, TARGET, TOKENIZER = "sentencepiece.model", "source.spm", "target.spm", "tokenizer.json"

PAGE = """# {name}, for CTranslate2

Written by regard from the model folder `{name}`{languages}.
Run this in the folder, after `pip install ctranslate2 {library}`:

```python
{code}
```

The text is one sentence, in Unicode NFC; split longer texts into sentences first. The length penalty is the
power of the length that is closest to the penalty of the model.{tags}
"""
TAGS = """

The first token selects the language to translate into: {tags}."""
SUBWORDS_CODE = """import ctranslate2, sentencepiece
translator = ctranslate2.Translator(".")
subwords = sentencepiece.SentencePieceProcessor(model_file="{model}")
pieces = {tag}subwords.encode({text}, out_type=str)
print(subwords.decode(translator.translate_batch([pieces], {search})[0].hypotheses[0]))"""
MARIAN_CODE = """import ctranslate2, sentencepiece
translator = ctranslate2.Translator(".")
source, target = (sentencepiece.SentencePieceProcessor(model_file=f) for f in ("{source}", "{target}"))
pieces = source.encode({text}, out_type=str)
print(target.decode(translator.translate_batch([pieces], {search})[0].hypotheses[0]))"""
TOKENIZER_CODE = """import ctranslate2, json, tokenizers
translator, names = ctranslate2.Translator("."), json.load(open("shared_vocabulary.json"))
tokenizer = tokenizers.Tokenizer.from_file("{model}")
pieces = [names[i] for i in {opening} + tokenizer.encode({text}, add_special_tokens=False).ids]
found = translator.translate_batch([pieces], {search})[0].hypotheses[0]
print(tokenizer.decode([names.index(piece) for piece in found]))"""
SENTENCES = {
    "de": "Das Wetter ist heute schön.",
    "en": "The weather is nice today.",
    "es": "Hoy hace buen tiempo.",
    "fr": "Il fait beau aujourd'hui.",
    "ja": "今日は天気がいいです。",
    "zh": "今天天气很好。",
}
"""What the code translates, by language."""


def usage_files(described: Description, vocabulary: Vocabulary) -> dict[str, bytes]:
    """The subword model and the README of a model folder with this vocabulary, by name.

    Raises:
        ConfigError: the vocabulary is of a class without files.
    """
    directions = described.task.directions
    decoding, text = described.decoding, repr(SENTENCES.get(directions[0][0] or "", SENTENCES["en"]))
    search = f"beam_size={decoding.beam_size}, length_penalty={their_penalty(decoding.length_penalty):g}"
    search = f"{search}, max_decoding_length={described.config.max_length - 1}"
    targets = [to for _, to in directions if to] if described.task.has_tags else []
    if isinstance(vocabulary, Subwords):
        files, library = {SUBWORD_MODEL: vocabulary.model}, "sentencepiece"
        first = f'["{tag(targets[0])}"] + ' if targets else ""
        code = SUBWORDS_CODE.format(model=SUBWORD_MODEL, tag=first, text=text, search=search)
    elif isinstance(vocabulary, MarianVocabulary):
        files, library = {SOURCE: vocabulary.spm, TARGET: vocabulary.outputs.spm}, "sentencepiece"
        code = MARIAN_CODE.format(source=SOURCE, target=TARGET, text=text, search=search)
    elif isinstance(vocabulary, TokenizerVocabulary):
        files, library = {TOKENIZER: vocabulary.tokenizer_json.encode()}, "tokenizers"
        opening = [*vocabulary.opening]
        code = TOKENIZER_CODE.format(model=TOKENIZER, opening=opening, text=text, search=search)
    else:
        problem = f"a vocabulary of the class {type(vocabulary).__name__} has no files to export"
        raise ConfigError(problem, str(described.folder), code="inexpressible_vocabulary")
    ways = [f"{language_name(source)} to {language_name(to)}" for source, to in directions if source and to]
    named = ", ".join(f"`{tag(to)}` {language_name(to)}" for to in targets)
    page = PAGE.format(
        name=described.folder.name,
        languages=f" ({' and '.join(ways)})" if ways else "",
        library=library,
        code=code,
        tags=TAGS.format(tags=named) if targets else "",
    )
    return files | {README: page.encode()}
