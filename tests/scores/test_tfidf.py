"""The baseline of classifiers, against plain loops and against texts that are easy to tell apart."""

import math
import random

import pytest
import torch

from regard.scores.tfidf import Tfidf, fit_baseline, runs, words


def test_features_are_words_with_pairs_and_runs_of_characters():
    assert list(words("The cat, the dog!")) == ["the", "cat", "the", "dog", "the cat", "cat the", "the dog"]
    assert list(runs("猫 坐")) == ["猫", " ", "坐", "猫 ", " 坐", "猫 坐"]


def test_weights_are_those_of_plain_loops():
    texts = ["red apple", "red red car", "blue car", "green car"]
    tfidf = Tfidf.of(texts, words)
    assert sorted(tfidf.columns) == ["car", "red"]  # what is in one text only says nothing about others
    rarity = {"red": math.log(5 / 3) + 1, "car": math.log(5 / 4) + 1}
    plain = {"red": (1 + math.log(2)) * rarity["red"], "car": rarity["car"]}
    length = math.hypot(*plain.values())
    dense = tfidf.rows(texts).times(torch.eye(2))
    row = dense[1]
    assert row[tfidf.columns["red"]].item() == pytest.approx(plain["red"] / length)
    assert row[tfidf.columns["car"]].item() == pytest.approx(plain["car"] / length)
    assert tfidf.rows(["nothing known", ""]).times(torch.eye(2)).tolist() == [[0, 0], [0, 0]]


def test_it_learns_what_words_tell_and_only_that():
    draw = random.Random(1)
    lively, dull, filler = ("bright", "merry"), ("grey", "dreary"), [f"word{i}" for i in range(30)]

    def texts(n, telling):
        rows = [(i % 2, draw.choice((dull, lively)[i % 2] if telling else filler)) for i in range(n)]
        return [f"{' '.join(draw.sample(filler, 4))} {word}" for _, word in rows], [i for i, _ in rows]

    told, random_ones = (
        fit_baseline(texts(200, telling), texts(60, telling), 2).accuracy(texts(200, telling))
        for telling in (True, False)
    )
    assert told == 1.0
    assert random_ones < 0.65
