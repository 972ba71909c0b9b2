// The parts of a server's page that need no browser.

import assert from "node:assert/strict";
import { test } from "./cases.mjs";
import { logTicks, thinOut, tickLabel, ticks } from "../../regard/page/figures/chart.js";
import { alike, distance, meanDistance } from "../../regard/page/screens/compare.js";
import { changesOf, diff } from "../../regard/page/compute/text.js";
import { parsed } from "../../regard/page/state/requests.js";
import { changes } from "../../regard/page/state/changes.js";
import { Server } from "../../regard/page/state/server.js";
import { examples, shellQuoted } from "../../regard/page/screens/api.js";
import { formatCell } from "../../regard/page/screens/experiments.js";
import { byDistance, sinusoids } from "../../regard/page/screens/positions.js";
import { effectText } from "../../regard/page/screens/map.js";
import { spreadOut } from "../../regard/page/screens/training.js";
import { rollout } from "../../regard/page/figures/streams.js";
import { cellSize } from "../../regard/page/figures/layout.js";
import { wrapped } from "../../regard/page/figures/svg.js";
import { isPainted, opOf, painting } from "../../regard/page/parts/breaking.js";
import { DEFAULTS, fromHash } from "../../regard/page/state/store.js";
import { textOfPiece, cut, marked, pieces, wordProbabilities } from "../../regard/page/compute/text.js";

const link = (source, target, start, end) => ({
  source,
  target,
  source_start: 0,
  source_end: 1,
  target_start: start,
  target_end: end,
  strength: 0.5,
});

test("a translation is cut into its words, and nothing is lost between them", () => {
  const text = "𝔄 cat,  sat";
  const found = pieces(text, [link("坐", "sat", 8, 11), link("猫", "cat", 2, 5)], []);
  assert.deepEqual(
    found.map((piece) => [piece.text, piece.link?.source ?? null]),
    [
      ["𝔄 ", null],
      ["cat", "猫"],
      [",  ", null],
      ["sat", "坐"],
    ],
  );
  assert.deepEqual(pieces("", [], []), []);
});

test("numbers that changed are marked, inside of words and between them", () => {
  const changed = (start, end) => ({ source: "14亿", target: "14 billion", target_start: start, target_end: end });
  const text = "𝔄 14 billion cats";
  const shown = (found) => found.map((piece) => [piece.text, piece.changed]);
  const ranges = [
    ["𝔄 ", false],
    ["14 billion", true],
    [" cats", false],
  ];
  assert.deepEqual(shown(pieces(text, [], [], [changed(2, 12)])), ranges);
  assert.deepEqual(shown(pieces(text, [link("亿", "14 billion", 2, 12)], [], [changed(2, 12)])), ranges);
  assert.deepEqual(shown(pieces(text, [], [], [changed(null, null)])), [[text, false]]); // the value is lost
  assert.deepEqual(marked("有14亿人", [[1, 4]]), [
    { text: "有", inside: false },
    { text: "14亿", inside: true },
    { text: "人", inside: false },
  ]);
});

test("a word is as sure as its least sure token, whatever spells it", () => {
  const text = "a cät sat";
  const tokens = ["▁a", "▁c", "<0xC3>", "<0xA4>", "t", "▁sat"];
  const scores = [-0.1, -0.2, -0.3, -2, -0.4, -0.5, 0];
  const sure = wordProbabilities(text, tokens, scores);
  const words = [link("a", "a", 0, 1), link("c", "cät", 2, 5), link("s", "sat", 6, 9)];
  const said = pieces(text, words, sure).filter((piece) => piece.link);
  assert.deepEqual(
    said.map((piece) => Number(Math.log(piece.probability).toFixed(6))),
    [-0.1, -2, -0.5],
  );
  assert.deepEqual(wordProbabilities(text, tokens, [...scores, 0]), []); // several sentences: nobody knows which
});

test("characters are counted whole", () => {
  assert.deepEqual(cut("a𝔄b", 1, 2), ["a", "𝔄", "b"]);
});

test("what changed from one text to another, and what stayed, make up both", () => {
  const [before, after] = ["The cat sat on the mat.", "The dog sat on a mat."];
  const parts = diff(before, after);
  const without = (change) =>
    parts
      .filter((part) => part.change !== change)
      .map((part) => part.text)
      .join("");
  assert.deepEqual([without("new"), without("gone")], [before, after]);
  assert.deepEqual(
    parts.filter((part) => part.change === "gone").map((part) => part.text),
    ["cat", "the"],
  );
  assert.deepEqual(diff("same", "same"), [{ text: "same", change: "same" }]);
});

test("texts with little in common are not struck through word by word", () => {
  const changes = (before, after) => changesOf(before, after).map(({ change }) => change);
  assert.deepEqual(changes("the cat sat on the mat", "the cat sat on the bench"), ["same", "gone", "new"]);
  assert.deepEqual(changes("山上的旧图书馆九点开门。", "我非常喜欢绿茶。"), ["same"]);
  assert.deepEqual(changesOf("one, two", "!, three, 4"), [{ text: "!, three, 4", change: "same" }]);
  assert.deepEqual(changes("", "a"), ["same"]);
});

test("a small effect is not rounded to nothing", () => {
  const shown = [-13.27, -9.949, 0.42, -0.0949, 0.0312, -0.001].map(effectText);
  assert.deepEqual(shown, ["−13.3", "−9.95", "0.42", "−0.095", "0.031", "−0.001"]);
});

test("samples show the way from the first to the last", () => {
  assert.deepEqual(spreadOut([...Array(31).keys()], 6), [0, 6, 12, 18, 24, 30]);
  assert.deepEqual(spreadOut([1, 2], 6), [1, 2]);
});

test("distances of shares go from 0 to 1", () => {
  assert.equal(distance([0.25, 0.75], [0.25, 0.75]), 0);
  assert.equal(distance([1, 0], [0, 1]), 1);
  const a = { data: Float32Array.from([1, 0, 0.5, 0.5]), shape: [2, 2] };
  const b = { data: Float32Array.from([0, 1, 0.5, 0.5]), shape: [2, 2] };
  assert.equal(meanDistance(a, b), 0.5);
});

test("ticks are round and within", () => {
  assert.deepEqual(ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticks(-7, 12, 4), [-5, 0, 5, 10]);
});

test("a long line is thinOut by means, and ends where it ended", () => {
  const points = Array.from({ length: 1000 }, (_, i) => [i, i % 2]);
  const few = thinOut(points, 11);
  assert.equal(few.length, 11);
  assert.deepEqual(few[10], [999, 1]);
  assert.ok(few.slice(0, 10).every(([, y]) => y === 0.5));
  assert.equal(thinOut(points, 2000), points);
});

test("events are taken as they come whole", () => {
  const { events, rest } = parsed(
    'event: entry\ndata: {"a": 1}\n\n: still here\n\nevent: reset\ndata: {}\n\neve',
  );
  assert.deepEqual(events, [
    { name: "entry", data: { a: 1 } },
    { name: "reset", data: {} },
  ]);
  assert.equal(rest, "eve");
});

test("changes are read from the address, and what a model does not have is not", () => {
  const kinds = ["encoder", "cross"].map((kind) => ({ kind, layers: 2, heads: 4 }));
  const settings = { similarity: "scaled-dot", positions: "none" };
  const about = /** @type {any} */ ({ kinds, settings, inputs: { tokens: [{}, {}, {}] } });
  const off = "cross.1.3,up.0.0,encoder.0.2,,cross.2.0,cross.0.4,cross.1,skip.cross.1,skip.cross.1.1";
  assert.deepEqual(changes({ off: `${off},uniform.encoder.1.0,no-scale,no-positions`, drop: "1,7,x" }, about), [
    { op: "head-off", kind: "cross", layer: 1, head: 3 },
    { op: "head-off", kind: "encoder", layer: 0, head: 2 },
    { op: "skip-block", block: "cross", layer: 1 },
    { op: "uniform", kind: "encoder", layer: 1, head: 0 },
    { op: "no-scale" },
    { op: "mask-source", token: 1 },
  ]);
  const alone = { ...about, inputs: null };
  assert.deepEqual(changes({ off: "", drop: "1" }, alone), []);
});

test("a state names a way, or the nearest is taken", () => {
  const both = [
    { source: "zh", target: "en" },
    { source: "en", target: "zh" },
  ];
  const server = new Server([
    { id: "a", directions: both, config: {}, run: false },
    { id: "b", directions: [], config: {}, run: false },
  ]);
  assert.deepEqual(server.way({ model: "a", from: "en", to: "zh" }), { model: "a", from: "en", to: "zh" });
  assert.deepEqual(server.way({ model: "gone", from: "", to: "" }), { model: "a", from: "", to: "" });
  const state = { ...DEFAULTS, text: "x", model: "b", prefix: "5,6" };
  assert.deepEqual(server.traceRequest(state), { source: "x", model: "b", prefix: [5, 6] });
  assert.deepEqual(server.traceRequest({ ...state, whole: "7" }), { source: "x", model: "b", target: [7] });
  assert.deepEqual(server.translateRequest({ ...state, model: "a" }), { text: "x", model: "a" }); // the text tells its language
  assert.deepEqual(server.translateRequest({ ...state, model: "a", from: "zh", to: "en" }), {
    text: "x",
    model: "a",
    source: "zh",
    target: "en",
  });
  const one = new Server([{ id: "c", directions: both.slice(0, 1), config: {}, run: false }]);
  const given = { ...state, model: "c" };
  assert.deepEqual(one.translateRequest(given), { text: "x", model: "c", target: "en" }); // nothing is forced
  assert.equal(one.translateRequest({ ...given, from: "zh", to: "en" }).source, "zh");
});

test("a search is asked for as one chose it, and only where there is one", () => {
  const server = new Server([
    { id: "a", task: "translate", directions: [], config: {}, run: false },
    { id: "b", task: "generate", directions: [], config: {}, run: false },
  ]);
  const state = { ...DEFAULTS, text: "x", model: "a", beam: 2, penalty: 0 };
  assert.deepEqual(server.traceRequest(state), { source: "x", model: "a", beam: 2, length_penalty: 0 });
  assert.deepEqual(server.traceRequest({ ...state, target: "y" }), { source: "x", model: "a", target: "y" });
  assert.deepEqual(server.traceRequest({ ...state, model: "b" }), { source: "x", model: "b" });
  const { top_k, temperature, stop } = server.generateRequest({ ...state, model: "b", top_k: 3, heat: 0.5 });
  assert.deepEqual([top_k, temperature, stop], [3, 0.5, undefined]);
});

test("a word of a shell is one word, whatever it holds", () => {
  assert.equal(shellQuoted("it's $x"), `'it'\\''s $x'`);
  const asked = { text: "it's", model: "m", from: "", to: "", target: "en" };
  assert.ok(
    examples("http://x", asked, true).every(({ code, id }) => id === "regard" || code.includes("YOUR_KEY")),
  );
  assert.ok(examples("http://x", asked, false).every(({ code }) => !code.includes("YOUR_KEY")));
});

test("positions are the paper's, and alike by distance", () => {
  const found = sinusoids(7, 4);
  assert.ok(Math.abs(found.data[3 * 4] - Math.sin(3)) < 1e-6);
  assert.ok(Math.abs(found.data[3 * 4 + 3] - Math.cos(0.03)) < 1e-6);
  const products = byDistance(found);
  assert.ok(Math.abs(products[0][1] - 2) < 1e-6);
  assert.ok(Math.abs(products[2][1] - (Math.cos(2) + Math.cos(0.02))) < 1e-5);
});

test("ticks of a logarithm are round, within, and few", () => {
  assert.deepEqual(logTicks(0.9, 200), [1, 3, 10, 30, 100]);
  assert.deepEqual(logTicks(2, 9), [2, 3, 5, 7]);
  assert.deepEqual(logTicks(0.001, 1e6).length, 10);
});

test("a number at an axis loses only what says nothing", () => {
  assert.deepEqual([0, 0.25, 2, 10, 300, 1000, 20000, -0.5].map(tickLabel), [
    "0", "0.25", "2", "10", "300", "1000", "20000", "−0.5",
  ]);
});

test("a cell of an experiment tells its seeds, where they differ", () => {
  const seeds = (low, mean, high) => ({ low, mean, high });
  assert.equal(formatCell("sinusoidal", "en"), "sinusoidal");
  assert.equal(formatCell(1024, "en"), "1024");
  assert.equal(formatCell(seeds(0.25, 0.5, 0.75), "en"), "0.500 (0.250 – 0.750)");
  assert.equal(formatCell(seeds(3, 3, 3), "en"), "3");
  assert.equal(formatCell(seeds(null, null, null), "en"), "–");
  assert.equal(formatCell(seeds(1e-6, 1e-6, 1e-6), "en"), "1.0e-6");
  assert.equal(formatCell({ en: "right", zh: "正确" }, "zh"), "正确");
});

test("a piece adds what it spells, and an end or half a character nothing", () => {
  assert.deepEqual(["▁the", "<0x0A>", "<0x41>", "<0xE7>", "</s>"].map(textOfPiece), [" the", "\n", "A", null, null]);
});

test("a drag paints heads as the first one, and one change of a head replaces another", () => {
  const state = { ...DEFAULTS, off: "mean.cross.0.1,skip.encoder.1,no-scale", op: "freeze" };
  const paint = (item, on) => painting(state, item, on, 3);
  assert.equal(opOf(state.off, "cross", 0, 1), "mean");
  assert.equal(opOf(state.off, "encoder", 1, 5), "skip");
  assert.equal(opOf(state.off, "decoder", 0, 1), "");
  assert.deepEqual(paint("head.cross.0.1", true), { off: "skip.encoder.1,no-scale,freeze.cross.0.1" });
  assert.deepEqual(paint("head.cross.0.2", false), { off: "mean.cross.0.1,skip.encoder.1,no-scale" });
  assert.equal(isPainted({ ...state, off: "freeze.cross.0.1" }, "head.cross.0.1"), true);
  assert.equal(isPainted(state, "head.cross.0.1"), false); // it is changed in another way
  assert.deepEqual(painting({ ...state, op: "" }, "head.cross.0.2", true, 3).off.split(",").pop(), "cross.0.2");
});

test("tokens and positions are dropped one by one, and one token stays", () => {
  const state = { ...DEFAULTS, drop: "0", unplaced: "1" };
  assert.deepEqual(painting(state, "drop.2", true, 3), { drop: "0,2" });
  assert.equal(painting({ ...state, drop: "0,2" }, "drop.1", true, 3), null);
  assert.deepEqual(painting({ ...state, drop: "0,2" }, "drop.2", false, 3), { drop: "0" });
  assert.deepEqual(painting(state, "unplaced.2", true, 3), { unplaced: "1,2" });
});

test("averaged and frozen heads refer to the text and its output", () => {
  const side = (text) => ({ text, tokens: [{}, {}, {}] });
  const kinds = ["encoder", "decoder", "cross"].map((kind) => ({ kind, layers: 2, heads: 3 }));
  const settings = { positions: "sinusoidal", similarity: "scaled-dot" };
  const about = { architecture: "encoder-decoder", kinds, settings, inputs: side("猫"), outputs: side("cat") };
  const state = { off: "mean.cross.1.2,freeze.decoder.0.1,freeze.decoder.0.3", drop: "", unplaced: "1,2,7" };
  const place = "decoder.layers";
  assert.deepEqual(changes(state, about), [
    { op: "ablate", by: "mean", texts: [["猫", "cat"]], at: `${place}.1.multi_head_attention.heads`, head: 2 },
    { op: "patch", text: ["猫", "cat"], at: `${place}.0.masked_multi_head_attention.heads`, head: 1 },
    { op: "ablate", at: "input_positions.added", by: "zero", positions: [1, 2] },
  ]);
  const alone = { ...about, inputs: null, kinds: kinds.slice(1, 2), settings: { ...settings, positions: "rotary" } };
  assert.deepEqual(changes({ ...state, off: "freeze.decoder.0.1" }, alone)[0].text, "cat");
  assert.equal(changes({ ...state, off: "" }, alone).length, 0); // nothing is added to its embeddings
  assert.deepEqual(changes({ ...state, off: "no-positions" }, about), [{ op: "no-positions" }]);
});

test("heads of two models are paired only if tokens and shapes are the same", () => {
  const side = (...ids) => ({ tokens: ids.map((id) => ({ id })) });
  const kinds = [{ kind: "cross", layers: 2, heads: 3 }];
  const about = { inputs: side(1, 2), outputs: side(3), kinds };
  assert.equal(alike(about, { ...about }), true);
  assert.equal(alike(about, { ...about, inputs: side(1, 5) }), false);
  assert.equal(alike(about, { ...about, kinds: [{ kind: "cross", layers: 2, heads: 4 }] }), false);
});

test("the rollout of a token divides it among the tokens of every column", () => {
  const matrix = (...rows) => ({ data: Float32Array.from(rows.flat()), shape: [rows.length, rows[0].length] });
  const even = [{ head: 0, matrix: matrix([0.5, 0.5], [0, 1]) }, { head: 1, matrix: matrix([0.5, 0.5], [1, 0]) }];
  const streams = {
    columns: [{ side: "inputs" }, { side: "inputs" }, { side: "outputs" }, { side: "outputs" }],
    blocks: [
      { from: 0, base: 0, to: 1, heads: even },
      { from: 1, base: 2, to: 3, heads: [{ head: 0, matrix: matrix([0.25, 0.75]) }] },
    ],
    texts: { inputs: ["a", "b"], outputs: ["c"] },
    selected: { side: "outputs", token: 0 },
  };
  const found = rollout(streams);
  assert.deepEqual(found[3], [1]);
  assert.deepEqual(found[2], [0.5]); // through the residual connection
  assert.deepEqual(found[1], [0.125, 0.375]);
  const [a, b] = found[0];
  assert.ok(Math.abs(a + b - 0.5) < 1e-6);
  assert.ok(Math.abs(a - (0.125 / 2 + 0.125 / 4 + 0.375 / 4)) < 1e-6);
});

test("a caption is broken between words and between Chinese characters", () => {
  assert.deepEqual(wrapped("one two three", 60, 12), ["one two", "three"]);
  assert.deepEqual(wrapped("猫坐在垫子上", 40, 12), ["猫坐在", "垫子上"]);
  assert.deepEqual(wrapped("", 40, 12), [""]);
});

test("cells shrink in a narrow place, but not without limit", () => {
  assert.equal(cellSize(10, 10), 44);
  assert.equal(cellSize(10, 10, 240), 24);
  assert.equal(cellSize(10, 60, 240), cellSize(10, 60)); // a long text scrolls
  assert.ok(cellSize(10, 30, 240) >= 15);
});

test("an older link to Heads off opens all heads", () => {
  assert.equal(fromHash("#screen=off&off=cross.0.1").screen, "map");
  assert.equal(fromHash("#screen=off&off=cross.0.1").off, "cross.0.1");
});
