"""Scenes of valid or nearly valid requests that cost much: to compute, to check, or to search through."""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.hostile.scene import JSON, Attacker, Scene, post, request
from benchmarks.peers.http_client import Client

BODY = (2 << 20) - 64
"""Bytes of the largest bodies, a little below the limit."""
SENTENCE = "猫坐在垫子上，狗在跑。"
TRACED, OUTPUT = SENTENCE * 24, "The cat sat on the mat, the dog ran. " * 20
"""A text of nearly as many tokens as the bundled model reads, and an output for it."""
N_LOOKING = 160
"""Clients of each process that look at one trace: with two processes more than 256."""
CHARACTERS = 100_000
"""Characters of the longest texts."""


# --- looking inside -----------------------------------------------------------------------------------------


async def numeric(attacker: Attacker) -> None:
    """Hundreds of inspections at a time: matrix products in as many threads as there are."""
    views = (
        "walk?kind=cross&layer=1&head={}&query=7",
        "walk?kind=encoder&layer=3&head={}&query=11",
        "attention?kind=encoder&layer=2&head=*&dtype=f32&form=scores",
        "summaries",
        "alignment",
        "influence?row=3&method=integrated-gradients&steps=8",
    )

    async def look(client: Client, turn: int) -> None:
        view = views[turn % len(views)]
        line = f"GET {attacker.target.trace}/{view.format(turn % 6)}"
        await attacker.ask(client, view.partition("?")[0], request(line))

    await attacker.forever(N_LOOKING, look)


async def inspections(attacker: Attacker) -> None:
    """The largest inspections: traces that fill the store, every head ablated, gradients in many steps."""
    heads = [
        [{"op": "head-off", "kind": "encoder", "layer": layer, "head": head}]
        for layer in range(10)
        for head in range(6)
    ]
    requests = (
        ("trace", post("/api/v1/traces", source=TRACED, target=OUTPUT)),
        ("trace with a search", post("/api/v1/traces", source=TRACED, beam=16)),
        ("every head", post("/api/v1/ablate", source=TRACED, target=OUTPUT, effects=True)),
        ("60 interventions", post("/api/v1/ablate", source=TRACED, interventions=heads)),
        ("influences", request(f"GET {attacker.target.trace}/influences?row=5&steps=512")),
        ("positions", request("GET /api/v1/positions?length=4096")),
        ("neighbours", request("GET /api/v1/neighbours?n=50&text=" + "%E7%8C%AB" * 200)),
    )

    async def look(client: Client, turn: int) -> None:
        await attacker.ask(client, *requests[turn % len(requests)])

    await attacker.forever(12, look)


# --- validation ---------------------------------------------------------------------------------------------


async def validation(attacker: Attacker) -> None:
    """Bodies of 2 MB that are cheap to send and dear to parse or to refuse."""
    bodies = list(dear_bodies())

    async def send(client: Client, turn: int) -> None:
        what, path, body = bodies[turn % len(bodies)]
        await attacker.ask(client, what, request(f"POST {path}", JSON, body=body))

    await attacker.forever(8, send)


def dear_bodies() -> Iterator[tuple[str, str, bytes]]:
    """What they are, where they are sent, and their bytes."""
    native, libre, chat = "/api/v1/translate", "/translate", "/v1/chat/completions"
    routes = ((native, "text", ""), (libre, "q", ',"source":"zh","target":"en"'))
    for path, field, rest in routes:
        for what, item in (("numbers", "1"), ("lists", "[]"), ("objects", "{}"), ("strings", '""')):
            n = BODY // (len(item) + 1) - 32
            listed = ",".join([item] * n)
            yield f"{n:,} {what}", path, f'{{"{field}":[{listed}]{rest}}}'.encode()
        keys = ",".join(f'"k{i}":1' for i in range(BODY // 12))
        yield "many keys", path, f'{{"{field}":"a",{keys}{rest}}}'.encode()
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        for depth in (500, 5_000, BODY // (len(opening) + 1) - 32):
            nested = opening * depth + "1" + closing * depth
            yield f"{depth:,} deep", native, f'{{"text":{nested}}}'.encode()
            yield f"{depth:,} deep", libre, nested.encode()
    for digits in ("9" * 100_000, "1e999", "-1e999", "1" * 1_900_000, "1." + "7" * 100_000):
        yield "huge number", native, f'{{"text":"a","seed":{digits}}}'.encode()
        yield "huge number", "/api/v1/traces", f'{{"source":"a","target":[{digits}]}}'.encode()
    ids = ",".join(["7"] * (BODY // 2 - 64))
    yield "many ids", "/api/v1/detokenize", f'{{"ids":[{ids}]}}'.encode()
    yield "many ids", "/api/v1/traces", f'{{"source":"a","target":[{ids}]}}'.encode()
    yield "many escapes", native, b'{"text":"' + b"\\u0001" * (BODY // 6 - 32) + b'"}'
    message = '{"role":"user","content":"a"}'
    messages = ",".join([message] * (BODY // 32))
    yield "many messages", chat, f'{{"model":"zh-en","messages":[{messages}]}}'.encode()
    changes = ",".join(["{}"] * (BODY // 4))
    yield "many interventions", "/api/v1/ablate", f'{{"source":"a","interventions":[[{changes}]]}}'.encode()
    keep = ",".join(['"a"'] * (BODY // 5))
    yield "many texts to keep", native, f'{{"text":"a","keep":[{keep}]}}'.encode()


# --- glossaries ---------------------------------------------------------------------------------------------


async def glossary(attacker: Attacker) -> None:
    """Glossaries from hundreds of entries to as many as a body holds; long and overlapping ones."""
    glossaries = list(large_glossaries())

    async def send(client: Client, turn: int) -> None:
        what, entries = glossaries[turn % len(glossaries)]
        data = post("/api/v1/translate", text=SENTENCE, glossary=entries)
        await attacker.ask(client, what, data)

    await attacker.forever(4, send)


def large_glossaries() -> Iterator[tuple[str, dict[str, str]]]:
    """What they are, and their entries; each fits into a body if its characters are sent in UTF-8."""
    for n in (300, 1_000, 3_000, 10_000, 30_000, 100_000):
        yield f"{n:,} entries", {f"term{i}": "t" for i in range(n)}
    for n in (200, 1_000):
        yield f"{n:,} overlapping", {"a" * i: "b" for i in range(1, n)}
    for n in (1_000, 10_000, 100_000):
        yield f"{n:,} characters", {"ab" * (n // 2): "c" * n}
    yield "10,000 alike", {f"{'a' * 40}{i}": "b" for i in range(10_000)}
    yield "spaces", {" " * i + "x": "b" for i in range(300)}


# --- texts --------------------------------------------------------------------------------------------------


async def patterns(attacker: Attacker) -> None:
    """Texts on which a careless regular expression takes seconds, and holds the interpreter."""
    texts = hard_texts()

    async def send(client: Client, turn: int) -> None:
        text = texts[turn // 3 % len(texts)]
        what = ascii(text[:12])
        data = (
            post("/detect", q=text),
            post("/api/v1/tokenize", text=text),
            post("/api/v1/translate", text=text, beam=1, deadline_ms=2_000),
        )
        await attacker.ask(client, what, data[turn % 3])

    await attacker.forever(4, send)


def hard_texts() -> list[str]:
    """Long runs of what cleaners, splitters and finders of numbers, URLs and code look for."""
    units = (
        *(
            "1.",
            "1,",
            "0",
            "一",
            "一百",
            "1年1月",
            "%",
            "$",
            "$a",
            "(",
            "[",
            "<",
            "<a ",
            "&",
            "&#",
            "`",
            "``` \n",
        ),
        *(
            "http://a.",
            "a@a.",
            "@",
            "@a",
            "\\",
            "\\(",
            "{{",
            "{a}",
            ":a:",
            "_",
            "*",
            "**a",
            "#",
            "-",
            "--",
            ". ",
        ),
        *(
            "。",
            "…",
            "“",
            "'",
            '"',
            " ",
            "\t",
            "\n",
            "\n\n",
            "\r\n",
            "\u3000",
            "\u200b",
            "a",
            "aB",
            "é",
            "e\u0301",
        ),
        *(
            "\U0001f468\u200d",
            "\U0001f1e6",
            "\ufe0f",
            "\u202e",
            "1:",
            "1/",
            "1 ",
            "1e",
            "-1",
            "A.",
            "Mr. ",
            "v1.",
        ),
    )
    return [unit * (CHARACTERS // len(unit)) for unit in units]


# --- greed --------------------------------------------------------------------------------------------------


async def greedy(attacker: Attacker) -> None:
    """Clients that ask for as much as one request can have."""
    requests = [greedy_request(attacker.target.texts, seed) for seed in range(4)]

    async def send(client: Client, turn: int) -> None:
        await attacker.ask(client, "256 texts, beam 16, 16 best", requests[turn % len(requests)])

    await attacker.forever(8, send)


def greedy_request(texts: tuple[str, ...], seed: int) -> bytes:
    """256 texts of many lengths, as many characters as are allowed, the widest search."""
    chance = random.Random(seed)
    longest = [" ".join(chance.choices(texts, k=chance.randint(1, 40))) for _ in range(256)]
    share = (CHARACTERS - 256) / sum(map(len, longest))
    cut = [text[: max(5, int(len(text) * min(1.0, share)))] for text in longest]
    return post("/api/v1/translate", text=cut, beam=16, n_best=16)


async def flood(attacker: Attacker) -> None:
    """Tiny valid requests, as many as go, from one address."""
    data = [post("/api/v1/translate", text=text) for text in attacker.target.texts]

    async def send(client: Client, turn: int) -> None:
        await attacker.ask(client, "short text", data[turn % len(data)])

    await attacker.forever(32, send)


SCENES = (
    Scene(
        "numeric",
        "320 clients that look at traces: walk, attention, summaries, influence",
        numeric,
        trace=True,
    ),
    Scene(
        "inspections", "24 clients with the largest traces, ablations and influences", inspections, trace=True
    ),
    Scene("validation", "16 clients with bodies of 2 MB: numbers, keys, lists, depth, digits", validation),
    Scene("glossary", "8 clients with 200 to 100,000 entries, long, overlapping", glossary, stop=glossary),
    Scene("patterns", "8 clients with 100,000 characters that are hard to search through", patterns),
    Scene("greedy", "16 clients with 256 texts, beam 16, 16 best", greedy, addresses=16),
    Scene("flood", "32 clients at one address with short texts", flood, processes=1, addresses=1),
)
