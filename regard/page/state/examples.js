// Example texts: what every screen shows until the user writes a text.

import { request } from "./requests.js";

/** @typedef {import("./server.js").Server} Server */
/** @typedef {import("./server.js").Model} Model */
/** @typedef {import("./store.js").State} State */
/**
 * @typedef {object} Example
 * @property {string} id Key of its name and of what to look for: `example.ID`; empty: a sentence of the model's run.
 * @property {string} text
 * @property {string} language
 * @property {string} [variant] The same sentence with another word.
 */

/** The bundled translator: what is said about its translations was checked with these weights. */
export const CHECKED_WEIGHTS = "7606d3053a6e2a28d654584c4b929519dedd07065bda01cdeb6da3171dedae7d";

/** @type {Example[]} */
export const EXAMPLES = [
  { id: "order", language: "zh", text: "我昨天在北京的一家小书店里买了一本关于鸟的书。" },
  {
    id: "it",
    language: "en",
    text: "The animal didn't cross the street because it was too tired.",
    variant: "The animal didn't cross the street because it was too wide.",
  },
  { id: "idiom", language: "en", text: "Don't put all your eggs in one basket." },
  { id: "date", language: "en", text: "The meeting was moved from March 3, 2025 to April 14, 2025." },
  {
    id: "long",
    language: "en",
    text: "Although it had rained all day, the children kept playing in the park until it got dark, and when they came home their shoes were completely wet.",
  },
  { id: "fails", language: "en", text: "It's raining cats and dogs." },
];

const FIRST = { en: "it", zh: "order" }; // the example to start with, by the language of the page

/** A sentence for models that neither translate these languages nor have a run, by language. */
const SENTENCES = {
  zh: "猫坐在垫子上。",
  en: "The cat sat on the mat.",
  de: "Die Katze sitzt am Fenster.",
  fr: "Le chat est assis à la fenêtre.",
  es: "El gato está en la ventana.",
  it: "Il gatto è seduto alla finestra.",
  pt: "O gato está sentado à janela.",
  ru: "Кошка сидит у окна.",
  ja: "猫が窓のそばに座っている。",
  ko: "고양이가 창가에 앉아 있다.",
};

/** @type {Map<string, string[]>} Sentences of the models' runs. */
const ofRuns = new Map();

/** Read the held-out sentences of the models' runs, if they stored some. @param {Model[]} models */
export async function readRuns(models) {
  const read = async ({ id }) => {
    const { probes } = await (await request(`/api/v1/runs/${encodeURIComponent(id)}/probes`)).json();
    const texts = probes.map(({ inputs, outputs }) => (inputs ?? outputs).text.trim());
    ofRuns.set(id, texts.filter(Boolean));
  };
  await Promise.all(models.filter(({ run }) => run).map((model) => read(model).catch(() => null)));
}

/** @param {Server} server @param {State} state @returns {Example[]} */
export function examplesFor(server, state) {
  const { id, task, directions } = server.model(state);
  const held = ofRuns.get(id) ?? [];
  if (held.length) return held.map((text) => ({ id: "", language: "", text }));
  const { from } = server.way(state);
  const sources = from ? [from] : directions.map(({ source }) => source);
  const known = task === "translate" ? EXAMPLES.filter(({ language }) => sources.includes(language)) : [];
  if (known.length) return known;
  const language = sources.find((each) => each in SENTENCES) ?? (state.lang === "zh" ? "zh" : "en");
  return [{ id: "", language, text: SENTENCES[language] }];
}

/** The text that is shown while there is no other. @param {Server} server @param {State} state */
export function firstExample(server, state) {
  const all = examplesFor(server, state);
  return (all.find(({ id }) => id === FIRST[state.lang]) ?? all[0]).text;
}

/** Whether what is said about the examples was checked with this model. @param {Server} server @param {State} state */
export const isChecked = (server, state) => server.model(state).weights_hash === CHECKED_WEIGHTS;

/** The example that a text is, or a variant of. @param {Example[]} examples @param {string} text */
export const exampleOf = (examples, text) =>
  examples.find((each) => [each.text, each.variant].includes(text.trim()));
