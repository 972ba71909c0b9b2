// The parts of the page that need no browser.

import assert from "node:assert/strict";
import style from "../../regard/page/style.json" with { type: "json" };
import { test } from "./cases.mjs";
import { checkAnswer, exerciseOf } from "../../regard/page/parts/exercise.js";
import { on, rgb, shade } from "../../regard/page/figures/colour.js";
import { parseLinks, alignmentScore } from "../../regard/page/screens/alignment.js";
import { preferredLanguage, wordsIn } from "../../regard/page/words/i18n.js";
import { NumberKeys, stateChanges } from "../../regard/page/state/keys.js";
import { parse } from "../../regard/page/compute/latex.js";
import { ancestry, cellSize, neighbour, shortened, textWidth, treeLayout } from "../../regard/page/figures/layout.js";
import { bracketed, csv, fixed, percent, short } from "../../regard/page/compute/number.js";
import { Player } from "../../regard/page/parts/player.js";
import { mayAttend, cached } from "../../regard/page/state/source.js";
import { spread } from "../../regard/page/state/source_file.js";
import { DEFAULTS, fitted, fromHash, linked, NEW_TEXT, toHash } from "../../regard/page/state/store.js";
import { exponentials, moments, formulaLines } from "../../regard/page/compute/substitute.js";
import {
  argmax,
  at,
  decode,
  dot,
  entropy,
  fromBase64,
  furthest,
  half,
  pooled,
  softmax,
} from "../../regard/page/compute/tensor.js";

const tokens = (n) => ({
  text: "",
  words: [],
  tokens: Array.from({ length: n }, (_, i) => ({ text: `t${i}` })),
});
const ABOUT = {
  kinds: [
    { kind: "encoder", layers: 2, heads: 3, queries: "inputs", keys: "inputs", causal: false, masked: [] },
    { kind: "decoder", layers: 5, heads: 3, queries: "outputs", keys: "outputs", causal: true, masked: [] },
    { kind: "cross", layers: 5, heads: 3, queries: "outputs", keys: "inputs", causal: false, masked: [1] },
  ],
  inputs: tokens(7),
  outputs: tokens(11),
  sizes: { d_model: 16, d_k: 4, d_v: 4, n_heads: 3, d_ff: 32 },
  settings: { similarity: "scaled-dot", norm: "layer", positions: "sinusoidal" },
};
const START = fitted(DEFAULTS, ABOUT);

test("a state comes back from its hash, and what is as usual is not in it", () => {
  const state = {
    ...START,
    screen: "walk",
    kind: "decoder",
    layer: 3,
    query: 9,
    threshold: 0.25,
    lang: "zh",
  };
  assert.deepEqual(fitted(fromHash(toHash(state)), ABOUT), state);
  assert.equal(toHash(DEFAULTS), "");
  assert.equal(toHash({ ...DEFAULTS, head: 2 }), "#head=2");
});

test("a hash that tells nonsense is as good as none", () => {
  for (const hash of ["#layer=x&head=&query=NaN", "#nonsense=1", "#layer=1e999", "#%%%"]) {
    assert.deepEqual(fromHash(hash), DEFAULTS);
  }
});

test("a link to another text shows the nearest that there is", () => {
  const state = fitted(fromHash("#kind=encoder&layer=9&head=9&query=99&key=99&view=arcs&theme=pink"), ABOUT);
  assert.deepEqual([state.layer, state.head, state.query, state.key], [1, 2, 6, 6]);
  assert.deepEqual([state.view, state.theme], ["arcs", "auto"]);
  assert.equal(fitted(fromHash("#kind=cross&view=arcs"), ABOUT).view, "matrix");
  assert.equal(fitted(fromHash("#kind=sideways"), ABOUT).kind, "cross");
});

test("half precision is read to the bit", () => {
  const known = [
    [0x3c00, 1],
    [0xc000, -2],
    [0x7bff, 65504],
    [0x0001, 2 ** -24],
    [0x3555, 0.333251953125],
    [0x8000, -0],
  ];
  for (const [bits, value] of known) assert.equal(half(bits), value);
  assert.equal(half(0x7c00), Infinity);
  assert.ok(Number.isNaN(half(0x7e00)));
});

test("numbers come out of bytes, little-endian, times their scale", () => {
  const buffer = fromBase64(Buffer.from(new Uint8Array([0, 0, 128, 63, 0, 0, 0, 192])).toString("base64"));
  assert.deepEqual([...decode(buffer, "f32")], [1, -2]);
  assert.deepEqual([...decode(new Uint8Array([0, 60, 0, 192]).buffer, "f16", 2)], [2, -4]);
  assert.deepEqual([...decode(new Uint8Array([0, 255]).buffer, "u8", 1 / 255)], [0, 1]);
  assert.deepEqual([...decode(new Uint8Array([1, 2]).buffer, "u16")], [513]);
});

test("tensors are cut by their first axis", () => {
  const tensor = { data: Float32Array.from([1, 2, 3, 4, 5, 6]), shape: [3, 2] };
  assert.deepEqual([...at(tensor, 1).data], [3, 4]);
  assert.deepEqual(at(tensor, 1).shape, [2]);
});

test("a softmax sums to 1, gives masked keys nothing, and bears large scores", () => {
  const shares = softmax([1000, 1001, -Infinity]);
  assert.equal(shares[2], 0);
  assert.ok(Math.abs(shares[0] + shares[1] - 1) < 1e-12);
  assert.ok(Math.abs(shares[1] / shares[0] - Math.E) < 1e-9);
  assert.equal(dot([1, 2], [3, 4]), 11);
  assert.equal(argmax([1, 5, 5, 2]), 1);
});

test("entropy is in bits", () => {
  assert.equal(entropy([0.25, 0.25, 0.25, 0.25]), 2);
  assert.equal(entropy([1, 0]), 0);
});

test("pooling keeps the largest of what a cell stands for", () => {
  const small = pooled({ data: Float32Array.from([1, 2, 0, 3, 4, 0, 0, 0, 9]), shape: [3, 3] }, 2);
  assert.deepEqual(
    [small.shape, [...small.data]],
    [
      [2, 2],
      [4, 0, 0, 9],
    ],
  );
});

test("how far values go leaves out what is not finite", () => {
  assert.equal(furthest([1, -3, null, -Infinity, -1e30]), 3);
  assert.equal(
    furthest([9, 2], (i) => i > 0),
    2,
  );
});

test("the largest weights go back into their places", () => {
  const { data } = spread(
    { data: Float32Array.from([2, 65535, 0, 0, 1, 32767, 0, 32768]), shape: [2, 2, 2] },
    [2, 3],
  );
  assert.deepEqual(
    [...data].map((value) => Math.round(value * 100) / 100),
    [0, 0, 1, 0.5, 0.5, 0],
  );
});

test("shades go from paper to full, and below 0 take another hue", () => {
  assert.notEqual(shade(0, 1, "light"), shade(1, 1, "light"));
  assert.equal(shade(2, 1, "light"), shade(1, 1, "light"));
  const [red, , blue] = rgb(shade(-1, 1, "light"));
  assert.ok(red > blue);
  assert.deepEqual([on("#000000"), on("#ffffff")], ["#ffffff", "#000000"]);
});

test("every shade can be written on", () => {
  const light = (part) => (part <= 10 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = (rgb) => rgb.reduce((sum, part, i) => sum + light(part) * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (one, other) => (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  for (const theme of ["light", "dark"]) {
    for (let value = -1; value <= 1; value += 0.01) {
      const colour = shade(value, 1, theme);
      const ink = on(colour) === "#ffffff" ? 1 : 0;
      assert.ok(contrast(luminance(rgb(colour)), ink) >= 4.5, `${theme} ${value}`);
    }
  }
});

test("numbers are short, and true minus signs", () => {
  assert.deepEqual(
    [fixed(-0.5, 1), fixed(-0.0001, 2), fixed(null), short(1234.5), short(-12.345), bracketed(-1)],
    ["−0.5", "0.00", "−∞", "1235", "−12.35", "(−1.000)"].map((text) => text),
  );
  assert.deepEqual(
    [percent(0.00001), percent(0.055), percent(0.5), percent(0)],
    ["<0.1%", "5.5%", "50%", "0.0%"],
  );
});

test("masks: no looking ahead, and no looking at what is masked", () => {
  assert.ok(!mayAttend(ABOUT.kinds[1], 2, 3) && mayAttend(ABOUT.kinds[1], 2, 2));
  assert.ok(!mayAttend(ABOUT.kinds[2], 2, 1) && mayAttend(ABOUT.kinds[2], 0, 6));
});

test("a source is asked once, unless it failed", async () => {
  let asked = 0;
  const source = cached({
    steps: async () => {
      asked += 1;
      if (asked === 1) throw new Error("busy");
      return [asked];
    },
  });
  await assert.rejects(source.steps());
  assert.deepEqual([await source.steps(), await source.steps()], [[2], [2]]);
});

const markup = (part) =>
  typeof part === "string" ? part : `<${part.name}>${part.children.map(markup).join("")}</${part.name}>`;

test("formulas become MathML", () => {
  assert.equal(
    markup(parse(String.raw`\frac{q \cdot k}{\sqrt{d_k}}`)),
    "<math><mfrac><mrow><mi>q</mi><mo>·</mo><mi>k</mi></mrow><msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt></mfrac></math>",
  );
  assert.match(
    markup(parse(String.raw`\sum_j \mathrm{weight}_j\, v_j`)),
    /<munder><mo>∑<\/mo><mi>j<\/mi><\/munder><msub><mi>weight<\/mi>/,
  );
  const cases = markup(
    parse(String.raw`\begin{cases} \mathrm{score} \\ -\infty & \text{where masked} \end{cases}`),
  );
  assert.match(cases, /<mtr><mtd><mi>score<\/mi><\/mtd><\/mtr><mtr>.*−.*∞.*<mtext>where masked<\/mtext>/);
});

test("texts are cut to a width, whole letters at a time", () => {
  assert.equal(shortened("cat", 100, 12), "cat");
  const cut = shortened("𠀀𠀁𠀂𠀃", 40, 12);
  assert.ok(cut.endsWith("…") && textWidth(cut, 12) <= 40 && !cut.includes("\ufffd"));
  assert.ok(cellSize(9, 11) > cellSize(90, 110));
});

const TREE = [
  { id: 0, parent: null, step: 0, rank: 0 },
  { id: 1, parent: null, step: 0, rank: 1 },
  { id: 2, parent: 1, step: 1, rank: 0 },
  { id: 3, parent: 1, step: 1, rank: 1 },
];

test("a tree is laid out by step and rank, and walked by arrows", () => {
  assert.deepEqual(treeLayout(TREE, { column: 10, row: 7 }).get(3), { x: 10, y: 7 });
  assert.deepEqual([...ancestry(TREE, 3)], [3, 1]);
  const walked = ["ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft"].map((arrow) =>
    neighbour(TREE, 1, arrow),
  );
  assert.deepEqual(walked, [2, 1, 0, 1]);
  assert.equal(neighbour(TREE, 2, "ArrowLeft"), 1);
});

test("keys change the state within what there is", () => {
  const press = (key, state = START) => stateChanges(key, state, ABOUT);
  assert.equal(press("d")?.kind, "decoder");
  assert.deepEqual(press("]"), { layer: 4 });
  assert.deepEqual(press("[", { ...START, layer: 0 }), { layer: 0 });
  assert.deepEqual(press("ArrowRight", { ...START, query: 10 }), { query: 10 });
  assert.equal(press("q"), null);
  assert.equal(stateChanges("x", START, { ...ABOUT, kinds: ABOUT.kinds.slice(0, 1) }), null);
});

test("two digits lead to a screen above the ninth, and one alone waits only if another could follow", async () => {
  const opened = [];
  const keys = new NumberKeys((place) => opened.push(place));
  for (const key of ["2", "1", "4", "0", "1", "9"]) assert.ok(keys.pressed(key, 14));
  assert.deepEqual(opened, [1, 13, 8], "2, 14, nothing for 0, and 9, since there is no nineteenth");
  assert.ok(!keys.pressed("x", 14));
  keys.pressed("1", 6);
  assert.deepEqual(opened.slice(3), [0], "at once where six screens are all");
  keys.pressed("1", 14);
  assert.equal(opened.length, 4);
  await new Promise((done) => setTimeout(done, 560));
  assert.deepEqual(opened.slice(4), [0]);
});

test("an output token and the step that wrote it are chosen together", () => {
  const cross = fitted({ ...DEFAULTS, kind: "cross" }, ABOUT);
  assert.deepEqual([cross.query, cross.step], [0, 0]);
  assert.deepEqual(linked({ query: 7 }, cross, ABOUT), { query: 7, step: 6, node: -1 });
  assert.deepEqual(linked({ step: 3 }, cross, ABOUT), { step: 3, query: 4 });
  assert.deepEqual(linked({ step: 10 }, cross, ABOUT), { step: 10, query: 10 }, "the end has no token");
  assert.deepEqual(linked({ query: 2 }, fitted({ ...DEFAULTS, kind: "encoder" }, ABOUT), ABOUT), { query: 2 });
  const stays = fitted({ ...DEFAULTS, kind: "encoder", query: 2, step: 6 }, ABOUT);
  assert.deepEqual([stays.query, stays.step], [2, 6]);
  assert.equal(fitted({ ...DEFAULTS, kind: "cross", step: 6 }, ABOUT).query, 7, "the token that was chosen before");
  assert.deepEqual([NEW_TEXT.query, NEW_TEXT.step], [-1, -1]);
});

test("the walkthrough begins where the model does, unless another place was chosen", () => {
  const place = (chosen) => {
    const { kind, layer } = fitted({ ...DEFAULTS, ...chosen }, ABOUT);
    return [kind, layer];
  };
  assert.deepEqual(place({ screen: "walk" }), ["encoder", 0]);
  assert.deepEqual(place({ screen: "head" }), ["cross", 4]);
  assert.deepEqual(place({ screen: "walk", kind: "cross", layer: 3 }), ["cross", 3]);
});

test("every measure of influence has a line of its own colour", () => {
  const { colours, dashes } = style.series;
  assert.equal(new Set(colours).size, colours.length);
  assert.ok(colours.length >= 7, "seven measures");
  for (const theme of ["light", "dark"]) {
    assert.equal(new Set(colours.map((name) => style.palette[theme][name])).size, colours.length);
    for (const name of colours) assert.ok(contrast(style.palette[theme][name], style.palette[theme].paper) > 3, name);
  }
  assert.ok(dashes.length > 1);
});

/** Contrast ratio of two colours (WCAG). */
function contrast(one, other) {
  const [high, low] = [one, other].map(luminance).sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

const luminance = (colour) =>
  rgb(colour)
    .map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);

test("sentences have their gaps filled; unknown words speak for themselves", () => {
  assert.match(wordsIn("en")("head.query", { token: "cat" }), /“cat”/);
  assert.match(wordsIn("zh")("head.query", { token: "{token}" }), /“{token}”/);
  assert.equal(wordsIn("en")("fate.winner"), style.fates.winner.en);
  assert.equal(wordsIn("en")("no such word"), "no such word");
  assert.deepEqual([preferredLanguage(["de", "zh-TW"]), preferredLanguage(["fr"])], ["zh", "en"]);
});

test("formulas are written with their numbers", () => {
  const steps = [
    { name: "q", values: [1, -2] },
    {
      name: "k",
      values: [
        [3, 4],
        [0.5, -1],
      ],
    },
    { name: "similarity", formula: "q · k", values: [-5, 2.5] },
    { name: "scaled", values: [-2.5, 1.25] },
    { name: "masked", values: [null, 1.25] },
    { name: "weights", values: [0, 1] },
    {
      name: "v",
      values: [
        [7, 1],
        [2, 1],
      ],
    },
    { name: "head", values: [2, 1] },
  ].map((step) => ({ formula: "", ...step }));
  const lines = (index, focus = 1) => formulaLines({ steps, index, focus, about: ABOUT, query: 0 });
  assert.deepEqual(lines(2), ["1.000 · 0.500 + (−2.000) · (−1.000) = 2.500"]);
  assert.deepEqual(lines(3), ["2.500 / √4 = 2.500 / 2 = 1.250"]);
  assert.deepEqual(lines(4, 0), ["−∞"]);
  assert.deepEqual(lines(5), ["exp(1.250) / Σ exp(score)", "= 3.490 / 3.490 = 1.000"]);
  assert.deepEqual(lines(7), ["1.000 · 2.000 + 0.000 · 7.000 = 2.000"]);
  assert.deepEqual(moments([1, 3]), { mean: 2, variance: 1 });
  assert.deepEqual(exponentials([null, 20]), { shift: 20, powers: [0, 1], sum: 1 });
});

test("a table is written as programs read it", () => {
  const rows = [
    ["−", "−0.5", "−∞"],
    ['say "a, b"', 3, "\u00a0"],
  ];
  const lines = csv({ head: ["x", "y", "z"], rows }).split("\r\n");
  assert.deepEqual(lines, ['\ufeff"x","y","z"', '"−","-0.5","-inf"', '"say ""a, b""","3",""', ""]);
});

test("an answer is right from all digits and from those that are written, and not beside them", () => {
  const q = Array.from({ length: 64 }, (_, i) => Math.sin(i + 1));
  const k = Array.from({ length: 64 }, (_, i) => Math.cos(1.1 * i));
  const product = dot(q, k);
  const steps = [
    { name: "q", values: q },
    { name: "k", values: [k] },
    { name: "similarity", formula: "q · k", values: [product] },
    { name: "scaled", values: [product / 2] },
  ].map((step) => ({ formula: "", ...step }));
  const at = (index) => ({ steps, index, focus: 0, about: ABOUT, query: 0 });
  const task = exerciseOf(at(2));
  const written = (values) => values.map((value) => Number(value.toFixed(3)));
  for (const right of [product, dot(written(q), written(k))]) assert.equal(checkAnswer(task, String(right)), 0);
  assert.deepEqual([checkAnswer(task, String(product - 1)), checkAnswer(task, String(product + 1))], [-1, 1]);
  assert.equal(checkAnswer(task, product.toFixed(3).replace("-", "−").replace(".", ",")), 0);
  assert.deepEqual([checkAnswer(task, " "), checkAnswer(task, "one")], [null, null]);
  assert.equal(checkAnswer(exerciseOf(at(3)), (product / 2).toFixed(3)), 0);
  assert.notEqual(checkAnswer(exerciseOf(at(3)), product.toFixed(3)), 0);
  assert.equal(exerciseOf(at(0)), null);
});

test("what plays by itself shows every step, however slowly they are drawn, and stops at the last", async () => {
  const shown = [];
  const player = new Player("steps", "step", 1);
  player.names = [0, 1, 2, 3];
  const store = {
    state: { screen: "steps", step: 3 },
    setQuietly: (changes) => Object.assign(store.state, changes),
    set: (changes) => store.notify(store.setQuietly(changes)),
    notify: async () => {
      const { step } = store.state;
      await new Promise((drawn) => setTimeout(drawn, 20));
      if (step === store.state.step) shown.push(step); // else another was asked for before this was drawn
    },
  };
  await player.toggle(store);
  assert.deepEqual(shown, [0, 1, 2, 3, 3]); // the last once more, where the button says "play" again
  assert.equal(player.play, null);
  const played = player.toggle(store);
  await player.toggle(store);
  await played;
  assert.equal(store.state.step, 0);
});

test("an alignment is alignmentScore as in Python, by sure and by possible links", () => {
  const gold = parseLinks(" 0-0 1-1 4-4  2p2 5?5", 6, 6);
  assert.deepEqual([...gold.sure], ["0-0", "1-1", "4-4"]);
  const score = alignmentScore([[0, 0], [1, 1], [2, 2], [3, 0]], gold);
  assert.deepEqual(score, { precision: 3 / 4, recall: 2 / 3, errors: 1 - 5 / 7 });
  for (const wrong of ["0-", "6-0", "0-6", "a-b"]) assert.equal(parseLinks(`0-0 ${wrong} 1-1`, 6, 6).wrong, wrong);
  assert.equal(alignmentScore([[0, 0]], parseLinks("0p0", 1, 1)), null);
});
