// Figure 1 of a model, the path of a word, and the examples.

import assert from "node:assert/strict";
import { test } from "./cases.mjs";
import { boxesOf, layoutOf, tensorsOf } from "../../regard/page/compute/figure_one.js";
import { boxOfStage, chaptersOf, inputOf, stagesOf, stepFrom, stepOf } from "../../regard/page/compute/path.js";
import { EXAMPLES, examplesFor, exampleOf, firstExample } from "../../regard/page/state/examples.js";
import { toKind } from "../../regard/page/state/store.js";

const SIZES = { encoder_layers: 3, decoder_layers: 2, d_model: 16 };
const model = (architecture, settings = {}) => ({
  ...{ architecture, sizes: SIZES, inputs: architecture !== "decoder", outputs: architecture !== "encoder" },
  settings: { norm_position: "post", positions: "sinusoidal", ...settings },
});
const ids = (of, stack) => boxesOf(of, stack).map(({ id }) => id);

test("the boxes of a model are those of its configuration, from bottom to top", () => {
  assert.deepEqual(ids(model("encoder-decoder"), "encoder"), [
    ...["text:input", "embedding:input", "position:input"],
    ...["encoder", "add:encoder", "encoder-feed-forward", "add:encoder-feed-forward"],
  ]);
  assert.deepEqual(ids(model("decoder", { norm_position: "pre", positions: "rotary" }), "decoder"), [
    ...["text:output", "embedding:output", "norm:decoder", "decoder", "add:decoder"],
    ...["norm:decoder-feed-forward", "decoder-feed-forward", "add:decoder-feed-forward"],
    ...["final:decoder", "linear", "softmax", "text:said"],
  ]);
  assert.ok(ids(model("encoder-decoder"), "decoder").includes("cross"));
  assert.equal(ids(model("encoder"), "encoder").at(-1), "text:said");
});

test("no box covers another, and all are inside of the figure, beside or above each other", () => {
  for (const architecture of ["encoder-decoder", "decoder", "encoder"])
    for (const norm_position of ["pre", "post"])
      for (const narrow of [false, true])
        for (const slim of [false, true]) {
          const { width, height, boxes, frames } = layoutOf(model(architecture, { norm_position }), narrow, slim);
          boxes.forEach((one, i) => {
            assert.ok(one.x >= 0 && one.y >= 0 && one.x + one.width <= width && one.y + one.height <= height, one.id);
            for (const other of boxes.slice(i + 1)) {
              const apart = one.x + one.width <= other.x || other.x + other.width <= one.x;
              assert.ok(apart || one.y + one.height <= other.y || other.y + other.height <= one.y, `${one.id} ${other.id}`);
            }
          });
          for (const { stack, y, height: tall } of frames)
            for (const box of boxes.filter((each) => each.stack === stack))
              assert.equal(box.y >= y && box.y + box.height <= y + tall, Boolean(box.block), box.id);
        }
});

test("the tensors of a box have the addresses of a trace", () => {
  const of = (id, norm_position, layer = 1) => {
    const about = model("encoder-decoder", { norm_position });
    const box = ["encoder", "decoder"].flatMap((stack) => boxesOf(about, stack)).find((each) => each.id === id);
    return tensorsOf(about, box, layer).map(({ address }) => address);
  };
  assert.deepEqual(of("cross", "post"), ["q", "k", "v", "output"].map((name) => `decoder.layers.1.multi_head_attention.${name}`));
  assert.deepEqual(of("decoder", "pre", 0)[0], "decoder.layers.0.masked_multi_head_attention.q");
  assert.deepEqual(of("norm:decoder-feed-forward", "pre"), ["decoder.layers.1.add_and_norm.2.normed"]);
  assert.deepEqual(of("add:cross", "post"), ["decoder.layers.1.add_and_norm.1.output"]);
  assert.deepEqual(of("final:encoder", "pre"), ["encoder.output"]);
  assert.deepEqual(of("position:output", "pre").at(-1), "output_embedding.with_positions");
  assert.deepEqual(of("softmax", "pre"), []);
});

test("a path begins with the characters, goes through every layer, and ends with the search", () => {
  const about = model("encoder-decoder", { norm_position: "pre" });
  const stages = stagesOf(about, { input: 4, step: 2 }, true);
  assert.deepEqual(stages.slice(0, 3).map(({ id }) => id), ["characters", "tokens", "encoder.0.embedding"]);
  assert.deepEqual(stages.slice(-3).map(({ id }) => id), ["logits", "probabilities", "beam"]);
  assert.equal(new Set(stages.map(({ id }) => id)).size, stages.length);
  const chapters = chaptersOf(stages).map(({ chapter }) => chapter);
  assert.deepEqual(chapters, [
    ...["text", "input", "encoder.0", "encoder.1", "encoder.2", "encoder.end"],
    ...["output", "decoder.0", "decoder.1", "decoder.end", "said"],
  ]);
  const last = stages.filter(({ chapter }) => chapter === "decoder.1").map(({ id }) => id);
  assert.deepEqual(last, [
    ...["decoder.1.normed", "decoder.1.weights", "decoder.1.output", "decoder.1.residual"],
    ...["cross.1.normed", "cross.1.weights", "cross.1.output", "cross.1.residual"],
    ...["cross.1.normed-2", "cross.1.feed-forward", "cross.1.residual-2"],
  ]);
  assert.ok(stages.every(({ side, query }) => query === undefined || query === (side === "inputs" ? 4 : 2)));
  const boxes = new Set(["encoder", "decoder"].flatMap((stack) => ids(about, stack)));
  assert.ok(stages.every(({ box }) => boxes.has(box)));
  for (const { id, box } of stages) assert.equal(boxOfStage(about, id), box, id);
});

test("a label is read off the first token, and without a search there is no beam", () => {
  const stages = stagesOf(model("encoder"), { input: 3, step: -1 }, false);
  const [logits, probabilities] = stages.slice(-2);
  assert.deepEqual([logits.id, logits.query, logits.kind, logits.layer], ["logits", 0, "encoder", 2]);
  assert.equal(probabilities.id, "probabilities");
  assert.deepEqual(stages.filter(({ chapter }) => chapter === "encoder.1").map(({ name }) => name), [
    ...["weights", "output", "residual", "norm", "feed-forward", "residual", "norm"],
  ]);
});

test("a stage finds its step in a walk, also where an intervention replaced it", () => {
  const steps = ["x", "weights", "residual", "feed-forward", "residual"].map((name) => ({ name }));
  assert.equal(stepOf(steps, { name: "residual", nth: 1 }), 4);
  assert.equal(stepOf(steps, { name: "residual", nth: 0 }), 2);
  assert.equal(stepOf([{ name: "x" }, { name: "intervention" }], { name: "output" }), 1);
});

test("an input and an output token lead to each other by the alignment of their words", () => {
  const word = (first, last) => ({ text: "", first, last });
  const alignment = { inputs: [word(1, 1), word(2, 3)], outputs: [word(1, 2), word(3, 3)], shares: [[0.2, 0.8], [0.9, 0.1]] };
  assert.equal(inputOf(null, alignment, [], 0), 2);
  assert.equal(inputOf(null, alignment, [], 2), 1);
  assert.equal(inputOf(null, null, [0, 0.3, 0.7], 2), 2);
  assert.equal(inputOf(null, alignment, [0.9, 0.1], 5), 0, "the end of the output is no word");
  assert.equal(stepFrom(null, alignment, 3, 9), 0);
  assert.equal(stepFrom(null, alignment, 0, 9), 9);
});

test("the selected tokens stay when another kind of attention is selected", () => {
  assert.deepEqual(toKind({ kind: "encoder", query: 5, key: 2 }, "cross"), { kind: "cross", query: -1, key: 5 });
  assert.deepEqual(toKind({ kind: "cross", query: 5, key: 2 }, "encoder"), { kind: "encoder", query: 2, key: -1 });
  assert.deepEqual(toKind({ kind: "cross", query: 5, key: 2 }, "decoder"), { kind: "decoder", query: 5, key: -1 });
  assert.deepEqual(toKind({ kind: "decoder", query: 5, key: 2 }, "cross"), { kind: "cross", query: 5, key: -1 });
  assert.deepEqual(toKind({ kind: "decoder", query: 5, key: 2 }, "decoder"), {});
});

const served = (task, directions, from = "") => ({
  model: () => ({ id: "m", task, directions }),
  way: () => ({ model: "m", from, to: "" }),
});

test("examples are in a language that the model translates", () => {
  const both = served("translate", [{ source: "zh", target: "en" }, { source: "en", target: "zh" }]);
  assert.equal(examplesFor(both, { lang: "en" }).length, 6);
  assert.notEqual(firstExample(both, { lang: "en" }), firstExample(both, { lang: "zh" }));
  const one = served("translate", [{ source: "zh", target: "en" }], "zh");
  assert.deepEqual(examplesFor(one, { lang: "en" }).map(({ language }) => language), ["zh"]);
  const german = served("translate", [{ source: "de", target: "en" }], "de");
  assert.match(firstExample(german, { lang: "en" }), /Katze/);
  assert.match(firstExample(served("generate", []), { lang: "zh" }), /猫/);
});

test("a variant of an example is the same example", () => {
  const { text, variant } = EXAMPLES.find((each) => each.variant);
  assert.equal(exampleOf(EXAMPLES, `${text} `), exampleOf(EXAMPLES, variant));
  assert.equal(exampleOf(EXAMPLES, "another text"), undefined);
});
