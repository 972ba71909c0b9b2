// Tour, exercises, score and terms, without a browser.

import assert from "node:assert/strict";
import { test } from "./cases.mjs";
import { dateChanged, dateWords } from "../../regard/page/compute/dates.js";
import { termsIn } from "../../regard/page/compute/terms.js";
import { begin, checkNumber, obstacle, PRACTICE, PRACTICE_IDS } from "../../regard/page/parts/practice.js";
import { LENGTH, stateAt, tourOf } from "../../regard/page/parts/tour.js";
import { forgetSolutions, loadScore, scoreFile, solve, solvedExercises } from "../../regard/page/state/score.js";
import { DEFAULTS } from "../../regard/page/state/store.js";
import en from "../../regard/page/words/en.json" with { type: "json" };

const AT_A_SERVER = ["translate", "map", "head", "walk", "steps", "beam", "alignment", "positions", "learn"];
const SAVED = ["map", "head", "walk", "steps", "beam", "alignment", "learn"];
const words = (text, lang) => termsIn(text, lang).map(({ start, end }) => text.slice(start, end));

/** A browser's storage, for the length of a test. */
async function withStorage(run) {
  const held = new Map();
  globalThis.localStorage = { getItem: (name) => held.get(name) ?? null, setItem: (name, value) => held.set(name, value) };
  try {
    await run(held);
  } finally {
    delete globalThis.localStorage;
  }
}

test("terms are whole words, in the singular and in the plural, the longest first", () => {
  assert.deepEqual(words("Each row is a query; its attention weights over the keys sum to 1.", "en"), ["query", "attention weights", "keys"]);
  assert.deepEqual(words("Hypotheses of the beam, ahead of the heads", "en"), ["Hypotheses", "beam", "heads"]);
  assert.deepEqual(words("overhead, header, x-beam", "en"), []);
  assert.deepEqual(words("d_model and d_k", "en"), ["d_model", "d_k"]);
  assert.equal(termsIn("self-attention", "en")[0].entry.zh[0], "自注意力");
});

test("a Chinese term begins and ends where a word does", () => {
  assert.deepEqual(words("每一行是一个查询，它对各个键的权重之和为 1。", "zh"), ["查询", "键"]);
  assert.deepEqual(words("快捷键列表", "zh"), []);
  assert.deepEqual(words("交叉注意力逐渐变成对齐", "zh"), ["交叉注意力", "对齐"]);
});

test("every step of the tour leads to a screen that is there and has its words", () => {
  for (const screens of [AT_A_SERVER, SAVED, ["classify", "map", "head", "walk", "steps", "positions", "learn"]]) {
    const tour = tourOf(screens, screens !== SAVED);
    assert.equal(tour.length, LENGTH, screens.join());
    assert.equal(tour.some(({ live }) => live), screens !== SAVED);
    for (const [i, { id, screen }] of tour.entries()) {
      assert.ok(screens.includes(screen), screen);
      assert.ok(`tour.${id}` in en && `tour.${id}.text` in en, id);
      assert.deepEqual([stateAt(tour, i).tour, stateAt(tour, i).screen, stateAt(tour, i).exercise], [i, screen, ""]);
    }
    const order = tour.filter(({ live }) => !live).map(({ screen }) => screens.indexOf(screen));
    assert.deepEqual(order, [...order].sort((a, b) => a - b), "the order of the side bar");
  }
});

test("there are twelve exercises, each with words, fields of the state, and one way to be checked", () => {
  assert.equal(new Set(PRACTICE_IDS).size, 12);
  for (const { id, screen, changes = {}, ...task } of PRACTICE) {
    for (const part of ["", ".text", ".why"]) assert.ok(`practice.${id}${part}` in en, id + part);
    assert.ok(Object.keys(changes).every((name) => name in DEFAULTS), id);
    assert.equal([task.number, task.check, task.panel].filter(Boolean).length, 1, id);
    assert.ok(AT_A_SERVER.includes(screen));
  }
});

const server = (task, sources) => ({
  model: () => ({ task, directions: sources.map((source) => ({ source })) }),
  way: () => ({ from: "" }),
});
const taskOf = (id) => PRACTICE.find((task) => task.id === id);

test("an exercise says why it cannot be done, and brings its text if the model reads it", () => {
  const at = (found, screens = AT_A_SERVER) => ({ server: found, screens, state: { ...DEFAULTS, lang: "en" } });
  const blocked = (context) => PRACTICE.filter((task) => obstacle(task, context)).map(({ id }) => id);
  assert.deepEqual(blocked(at(server("translate", ["en"]))), []);
  assert.deepEqual(blocked(at(null, SAVED)), ["off", "fork"]);
  assert.deepEqual(blocked(at(server("classify", []))), ["likelihood", "aligner", "doubt", "fork"]);
  const off = taskOf("off");
  assert.match(begin(off, at(server("translate", ["en", "zh"]))).text, /五月/);
  assert.match(begin(off, at(server("translate", ["de", "en"]))).text, /July/);
  assert.equal("text" in begin(off, at(server("translate", ["de", "fr"]))), false);
  assert.equal(begin(off, at(server("classify", []))).exercise, "off");
});

test("numbers are compared with those of the model that is shown", () => {
  const about = { sizes: { d_model: 384, d_k: 64, d_v: 32, n_heads: 6 }, wanted: [{ log_prob: -0.5 }, { log_prob: -0.25 }] };
  const context = { keys: Array(8).fill({}), about };
  assert.equal(checkNumber(taskOf("uniform"), context, "3"), 0);
  assert.equal(checkNumber(taskOf("uniform"), context, "2.5"), -1);
  assert.equal(checkNumber(taskOf("matrices"), context, String(2 * 384 * 6 * (64 + 32))), 0);
  assert.equal(checkNumber(taskOf("likelihood"), context, "−0.75"), 0);
  assert.equal(checkNumber(taskOf("likelihood"), context, "0.75"), 1);
  assert.equal(checkNumber(taskOf("likelihood"), context, "many"), null);
});

test("what is selected is compared with what the model does", async () => {
  const head = (role) => ({ role });
  const source = {
    summaries: async () => ({ encoder: [[head("first"), head("previous")]], cross: [[head(null), head(null)]] }),
    alignment: async () => ({ heads: [[0, 1]] }),
    steps: async () => [{ entropy: 0.1 }, { entropy: 2 }, { entropy: 1 }],
  };
  const judged = (id, state, more = {}) => taskOf(id).check({ source, state: { ...DEFAULTS, ...state }, ...more });
  assert.equal(await judged("previous", { kind: "encoder", layer: 0, head: 1 }), true);
  assert.equal(await judged("previous", { kind: "encoder", layer: 0, head: 0 }), false);
  assert.equal(await judged("aligner", { kind: "cross", layer: 0, head: 1 }), true);
  assert.equal(await judged("aligner", { kind: "encoder", layer: 0, head: 1 }), false);
  assert.equal(await judged("doubt", { step: 1 }), true);
  assert.equal(await judged("doubt", { step: 2 }), false);
  source.summaries = async () => ({ encoder: [[head("first")]] });
  assert.equal(await judged("previous", { kind: "encoder", layer: 0, head: 0 }), "practice.previous.none");
});

test("a head that is off counts if the date of the output changes", async () => {
  const about = { kinds: [{ kind: "cross", layers: 2, heads: 2 }], settings: { positions: "rotary" }, inputs: { tokens: [] } };
  const judged = (off, text) => {
    const found = { ablate: async () => ({ intact: { text: "It is the third of July." }, items: [{ text }] }) };
    return taskOf("off").check({ about, server: found, state: { ...DEFAULTS, off } });
  };
  assert.equal(await judged("", "It is the fourth of July."), "practice.off.none");
  assert.equal(await judged("cross.0.1,no-positions", "It is the fourth of July."), "practice.off.others");
  assert.equal(await judged("cross.0.1", "It is the fourth of July."), true);
  assert.equal(await judged("cross.0.1", "It was the third of July, I think."), false);
});

test("dates are found in both languages", () => {
  assert.deepEqual(dateWords("Tuesday, the twenty-second of May"), ["tuesday", "twenty", "second", "may"]);
  assert.deepEqual(dateWords("今天是五月二十二日，星期二。"), ["五月", "二十二日", "星期二"]);
  assert.ok(dateChanged("会议从 3 月 3 日开始", "会议从 3 月 4 日开始"));
  assert.ok(!dateChanged("今天是五月二日。", "这一天是五月二日。"));
  assert.ok(dateChanged("no date", "no dates"));
});

test("the score is kept, saved as a file, and loaded from one", async () => {
  await withStorage(async () => {
    assert.equal(solve("uniform"), true);
    assert.equal(solve("uniform"), false);
    solve("off");
    const file = scoreFile(new Date(0));
    assert.deepEqual(JSON.parse(file), { format: "regard-score", solved: ["off", "uniform"], saved: "1970-01-01T00:00:00.000Z" });
    forgetSolutions();
    assert.equal(solvedExercises().size, 0);
    solve("fork");
    assert.equal(loadScore(file.replace('"off"', '"hacked"'), PRACTICE_IDS), 1);
    assert.deepEqual([...solvedExercises()], ["fork", "uniform"]);
    for (const wrong of ["", "[]", "{}", "null", '{"format": "regard-score"}', '{"solved": ["off"]}'])
      assert.equal(loadScore(wrong, PRACTICE_IDS), null, wrong);
  });
});
