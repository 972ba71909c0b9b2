"""Links that are known, found again by counting."""

import random

import pytest

from regard.data.numerals import sample
from regard.look.alignment.aligner import link_words


def shuffled_pairs(n, seed, n_words=40, fertile=False):
    """Pairs in a made-up pair of languages, and their links: words translated, and neighbours swapped."""
    draw = random.Random(seed)
    pairs, links = [], []
    for _ in range(n):
        inputs = draw.sample(range(n_words), draw.randint(1, 8))
        order = list(range(len(inputs)))
        for i in range(0, len(order) - 1, 2):
            if draw.random() < 0.5:
                order[i], order[i + 1] = order[i + 1], order[i]
        outputs, known = [], set()
        for i in order:
            if fertile and draw.random() < 0.3:
                outputs.append("the")  # comes from nothing
            known.add((i, len(outputs)))
            outputs.append(f"out{inputs[i]}")
        pairs.append(([f"in{word}" for word in inputs], outputs))
        links.append(known)
    return pairs, links


@pytest.mark.parametrize("fertile", [False, True])
def test_known_links_are_found_and_hardly_any_other(fertile):
    pairs, known = shuffled_pairs(400, 1, fertile=fertile)
    found = link_words(pairs)
    right = sum(len(one & other) for one, other in zip(found, known, strict=True))
    assert right / sum(map(len, found)) > 0.98
    assert right / sum(map(len, known)) > 0.95


def test_case_does_not_part_words_and_null_takes_what_has_no_source():
    pairs, _ = shuffled_pairs(300, 2, fertile=True)
    loud = [([word.upper() for word in inputs], outputs) for inputs, outputs in pairs[:150]]
    found = link_words([*loud, *pairs[150:]])
    assert found[:150] == link_words(pairs)[:150]
    articles = [j for (_, outputs), links in zip(pairs, found, strict=True)
                for _, j in links if outputs[j] == "the"]  # fmt: skip
    n_articles = sum(outputs.count("the") for _, outputs in pairs)
    assert len(articles) < 0.1 * n_articles


def test_numbers_in_words_are_linked():
    pairs = [
        (list(pair.chinese), pair.english.replace("-", " ").split()) for pair in sample("train", 1500, 3)
    ]
    found = link_words(pairs)
    digits = dict(
        zip("三四五六七八九", ("three", "four", "five", "six", "seven", "eight", "nine"), strict=True)
    )
    right = wrong = 0
    for (inputs, outputs), links in zip(pairs, found, strict=True):
        for i, j in links:
            if inputs[i] in digits and outputs[j] in digits.values():
                right += digits[inputs[i]] == outputs[j]
                wrong += digits[inputs[i]] != outputs[j]
    assert right > 300
    assert wrong / right < 0.02


def test_of_nothing_there_are_no_links():
    assert link_words([]) == []
    assert link_words([([], ["a"]), (["b"], []), ([], [])]) == [frozenset()] * 3
