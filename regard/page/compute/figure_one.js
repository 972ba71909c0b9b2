// Figure 1 of the paper for one model: its boxes from bottom to top, where they stand, and what they hold.

/**
 * @typedef {object} Box
 * @property {string} id `text:`, `embedding:`, `position:`, `norm:`, `add:`, `final:` with a side, block or stack; a block;
 *   `label-head`, `linear`, `softmax`, `text:said`.
 * @property {string} type What it is, for its colour and words.
 * @property {"encoder" | "decoder"} stack
 * @property {string} block The block that it belongs to; empty outside of layers.
 *
 * @typedef {Box & { x: number, y: number, width: number, height: number }} Placed
 * @typedef {{ stack: "encoder" | "decoder", x: number, y: number, width: number, height: number, layers: number }} Frame
 * @typedef {{ d: string, memory?: boolean }} Line
 * @typedef {{ width: number, height: number, boxes: Placed[], frames: Frame[], lines: Line[] }} Layout
 *
 * @typedef {object} Model What the figure depends on: a trace's description, or a model's.
 * @property {string} architecture
 * @property {Record<string, any>} sizes
 * @property {Record<string, string>} [settings]
 */

const WIDE = 204; // of a box with a picture
const SLIM = 142; // of a box without one
const SIDE = 30; // between a box and the frame of its layer, for the residual connections
const LAYERS = 40; // beside a frame, for the numbers of the layers
const GAP = 13;
const BETWEEN = 42; // from one stack to the other
const TALL = { attention: 44, text: 24, position: 26, layer: 30 };
const ATTENTION = ["encoder", "decoder", "cross"];

/** @param {Model} model */
const settingsOf = ({ settings, sizes }) => settings ?? sizes;

/** The stacks of a model. @param {Model} model @returns {("encoder" | "decoder")[]} */
export const stacksOf = ({ architecture }) =>
  architecture === "encoder-decoder" ? ["encoder", "decoder"] : [architecture === "encoder" ? "encoder" : "decoder"];

/** The blocks of each layer of a stack, in the order in which they run. @param {Model} model @param {string} stack */
export const blocksOf = ({ architecture }, stack) => [
  stack,
  ...(stack === "decoder" && architecture === "encoder-decoder" ? ["cross"] : []),
  `${stack}-feed-forward`,
];

/** The stack of a block. @param {string} block @returns {"encoder" | "decoder"} */
export const stackOfBlock = (block) => (block.startsWith("encoder") ? "encoder" : "decoder");

/** Number of layers of a stack. @param {Model} model @param {string} stack */
export const layersOf = ({ sizes }, stack) => sizes[`${stack}_layers`];

/** The boxes of a stack from bottom to top. @param {Model} model @param {"encoder" | "decoder"} stack @returns {Box[]} */
export function boxesOf(model, stack) {
  const { norm_position, positions } = settingsOf(model);
  const side = stack === "encoder" ? "input" : "output";
  const box = (id, type, block = "") => ({ id, type, stack, block });
  const adds = ["sinusoidal", "learned"].includes(positions);
  const pre = norm_position === "pre";
  const layer = blocksOf(model, stack).flatMap((block) => [
    ...(pre ? [box(`norm:${block}`, "norm", block)] : []),
    box(block, ATTENTION.includes(block) ? "attention" : "feed-forward", block),
    box(`add:${block}`, pre ? "add" : "add-norm", block),
  ]);
  const predicts = stack === stacksOf(model).at(-1);
  return [
    box(`text:${side}`, "text"),
    box(`embedding:${side}`, "embedding"),
    ...(adds ? [box(`position:${side}`, "position")] : []),
    ...layer,
    ...(pre ? [box(`final:${stack}`, "norm")] : []),
    ...(predicts ? [box("linear", "linear"), box("softmax", "softmax"), box("text:said", "text")] : []),
  ];
}

/** @param {Box} box */
const tall = ({ type }) => TALL[type] ?? TALL.layer;

/**
 * The places of all boxes; the stacks beside each other, or in a narrow window the decoder above the encoder.
 * @param {Model} model
 * @param {boolean} [narrow]
 * @param {boolean} [slim] Whether boxes have no pictures.
 * @returns {Layout}
 */
export function layoutOf(model, narrow = false, slim = false) {
  const wide = slim ? SLIM : WIDE;
  const stacks = stacksOf(model).map((stack) => ({ stack, boxes: boxesOf(model, stack) }));
  const heights = stacks.map(({ boxes }) => boxes.reduce((sum, box) => sum + tall(box) + GAP, GAP));
  const column = LAYERS + wide + 2 * SIDE;
  const above = narrow && stacks.length > 1;
  const width = above ? column + 34 : stacks.length * column + (stacks.length - 1) * BETWEEN;
  const height = above ? heights[0] + heights[1] + GAP : Math.max(...heights);
  /** @type {Layout} */
  const layout = { width, height, boxes: [], frames: [], lines: [] };
  stacks.forEach(({ stack, boxes }, i) => {
    const mirrored = i > 0 && !above; // the numbers of the layers stand outside
    const left = above ? 34 : i * (column + BETWEEN);
    const x = left + SIDE + (mirrored ? 0 : LAYERS);
    const bottom = above && i > 0 ? height - heights[0] - GAP : height;
    place(layout, model, boxes, { x, bottom, wide });
  });
  if (stacks.length > 1) layout.lines.push(...memory(layout, above));
  return layout;
}

/**
 * Place one stack from bottom to top, with its frame and lines.
 * @param {Layout} layout
 * @param {Model} model
 * @param {Box[]} boxes
 * @param {{ x: number, bottom: number, wide: number }} where
 */
function place(layout, model, boxes, { x, bottom, wide }) {
  let y = bottom;
  const placed = boxes.map((box) => {
    y -= tall(box) + GAP;
    return { ...box, x, y: y + GAP / 2, width: wide, height: tall(box) };
  });
  layout.boxes.push(...placed);
  const inside = placed.filter(({ block }) => block);
  const [first, last] = [inside[0], inside[inside.length - 1]];
  const { stack } = first;
  const top = last.y - GAP * 0.8;
  const frame = { stack, x: x - SIDE + 4, y: top, width: wide + 2 * SIDE - 8 };
  layout.frames.push({ ...frame, height: first.y + first.height + GAP * 0.92 - top, layers: layersOf(model, stack) });
  const middle = x + wide / 2;
  placed.slice(1).forEach((box, i) => {
    const [from, to] = [placed[i].y, box.y + box.height];
    // Queries, keys and values; those of cross-attention come from the memory, except for the queries.
    const fork = to + 0.4 * (from - to);
    const single = box.type !== "attention" || box.block === "cross";
    const ends = single ? [wide / 2] : [wide / 4, wide / 2, (3 * wide) / 4];
    for (const end of ends) layout.lines.push({ d: `M${middle} ${from}V${fork}H${x + end}V${to}` });
  });
  for (const block of blocksOf(model, stack)) layout.lines.push(residual(placed, block));
}

/** The residual connection around a block. @param {Placed[]} placed @param {string} block */
function residual(placed, block) {
  const of = placed.filter((box) => box.block === block);
  const add = of[of.length - 1];
  const { x, width } = add;
  const from = of[0].y + of[0].height + GAP * 0.7;
  const [middle, to] = [x + width / 2, add.y + add.height / 2];
  const out = stackOfBlock(block) === "encoder" ? x - SIDE / 2 : x + width + SIDE / 2;
  const edge = stackOfBlock(block) === "encoder" ? x : x + width;
  return { d: `M${middle} ${from}H${out}V${to}H${edge}` };
}

/** The memory: from the top of the encoder to the keys and values of cross-attention. @param {Layout} layout @param {boolean} above */
function memory({ boxes }, above) {
  const top = boxes.filter(({ stack }) => stack === "encoder").at(-1);
  const cross = boxes.find(({ id }) => id === "cross");
  const { width } = top;
  const middle = top.x + width / 2;
  const bottom = cross.y + cross.height;
  const fork = bottom + GAP / 2;
  const way = above
    ? `M${middle} ${top.y}V${top.y - GAP / 2}H10V${fork}`
    : `M${middle} ${top.y}V${top.y - GAP}H${top.x + width + SIDE + BETWEEN / 2}V${fork}`;
  return [width / 4, (3 * width) / 8].map((end) => ({ d: `${way}H${cross.x + end}V${bottom}`, memory: true }));
}

const MODULES = { encoder: "multi_head_attention", decoder: "masked_multi_head_attention", cross: "multi_head_attention" };

/** The address of a block. @param {string} block @param {number} layer */
export const addressOfBlock = (block, layer) =>
  `${stackOfBlock(block)}.layers.${layer}.${MODULES[block] ?? "feed_forward"}`;

/**
 * A tensor that a box holds: its address, its symbol, and the letters of its shape.
 * @typedef {{ address: string, name: string, shape: string[], heads?: boolean }} Held
 */

/**
 * The recorded tensors of a box, in the order in which they are computed; weights and predictions are not among them.
 * @param {Model} model
 * @param {Box} box
 * @param {number} layer
 * @returns {Held[]}
 */
export function tensorsOf(model, { id, stack, block }, layer) {
  const side = stack === "encoder" ? "input" : "output";
  const letter = stack === "encoder" ? "S" : "T";
  const keys = stack === "encoder" || block === "cross" ? "S" : "T";
  const vector = (address, name) => ({ address, name, shape: [letter, "d_model"] });
  const around = `${stack}.layers.${layer}.add_and_norm.${blocksOf(model, stack).indexOf(block)}`;
  const [type] = id.split(":");
  if (type === "embedding") return [vector(`${side}_embedding.embedded`, "embedding")];
  if (type === "position")
    return [vector(`${side}_embedding.positions`, "position"), vector(`${side}_embedding.with_positions`, "x")];
  if (type === "norm") return [vector(`${around}.normed`, "normed")];
  if (type === "add") {
    const post = settingsOf(model).norm_position !== "pre";
    return [vector(`${around}.output`, post ? "norm" : "residual")];
  }
  if (type === "final") return [vector(`${stack}.output`, "final-norm")];
  if (!block) return [];
  const at = addressOfBlock(block, layer);
  const output = vector(`${at}.output`, block.endsWith("feed-forward") ? "feed-forward" : "output");
  if (block.endsWith("feed-forward")) return [output];
  const projected = (name, rows, width) => ({ address: `${at}.${name}`, name, shape: [rows, "h", width], heads: true });
  return [projected("q", letter, "d_k"), projected("k", keys, "d_k"), projected("v", keys, "d_v"), output];
}

/** The box that an address of the state names, or the one of a kind of attention. @param {Layout} layout @param {string} id */
export const boxNamed = ({ boxes }, id) => boxes.find((box) => box.id === id) ?? null;
