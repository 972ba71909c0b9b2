// The current request as code: native API, LibreTranslate and OpenAI clients.

import { h } from "../parts/dom.js";
import { hasKey } from "../state/requests.js";

/** @typedef {import("../frame.js").Context} Context */

/** @typedef {{ id: string, language: string, code: string }} Example */
/** @typedef {(base: string, current: Current, key: boolean) => [string, string, string][]} Examples */
/**
 * @typedef {object} Current
 * @property {string} task
 * @property {string} text
 * @property {string} model
 * @property {string} from Empty like `to` if the server detects the language.
 * @property {string} to
 * @property {object} [generateRequest] The request of the Generate screen.
 * @property {string} target The target language; empty if the model has none.
 */

/** A text as one quoted word of a shell. @param {string} text */
export function shellQuoted(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A text as a Python string literal; JSON's are valid Python, except for lone surrogates. @param {string} text */
const pythonString = (text) => JSON.stringify(text);

/** @param {object} body */
function indented(body) {
  return JSON.stringify(body, null, 2);
}

/** @param {string} address @param {object} body @param {boolean} key */
function curl(address, body, key) {
  const lines = [
    `curl -s ${address}`,
    ...(key ? ["-H 'Authorization: Bearer YOUR_KEY'"] : []),
    "-H 'Content-Type: application/json'",
    `-d ${shellQuoted(indented(body))}`,
  ];
  return lines.join(" \\\n  ");
}

/**
 * @param {string} address
 * @param {string} fields As Python source.
 * @param {string} shown The field of an item that is printed.
 * @param {boolean} key
 */
function python(address, fields, shown, key) {
  return [
    "import json",
    "from urllib.request import Request, urlopen",
    "",
    `body = {${fields}}`,
    `headers = {"Content-Type": "application/json"${key ? ', "Authorization": "Bearer YOUR_KEY"' : ""}}`,
    `request = Request("${address}", json.dumps(body).encode(), headers)`,
    "with urlopen(request) as answer:",
    `    print(json.load(answer)["items"][0]["${shown}"])`,
  ].join("\n");
}

/**
 * @param {string} base
 * @param {string} call The call with its arguments.
 * @param {string} shown The attribute of the first choice that is printed.
 * @param {boolean} key
 */
function openai(base, call, shown, key) {
  return [
    "from openai import OpenAI  # pip install openai",
    "",
    `client = OpenAI(base_url="${base}/v1", api_key="${key ? "YOUR_KEY" : "none"}")`,
    `answer = client.${call}`,
    `print(answer.choices[0].${shown})`,
  ].join("\n");
}

/** @param {string} does @param {string} text */
function offline(does, text) {
  return [
    "import regard",
    "",
    "model = regard.load(FOLDER)  # the folder that this server was started with",
    `print(model.${does})`,
    `model.look(${pythonString(text)}).save("look.html")`,
  ].join("\n");
}

/**
 * @param {string} base The server's address.
 * @param {Current} current
 * @param {boolean} key Whether the server requires a key.
 * @returns {Example[]}
 */
export function examples(base, current, key) {
  const made = { generate: generation, classify: classification }[current.task] ?? translation;
  return made(base, current, key).map(([id, language, code]) => ({ id, language, code }));
}

/** @type {Examples} */
const translation = (base, { text, model, from, to, target }, key) => {
  const native = {
    ...{ text, model },
    ...(from && { source: from }),
    ...(to && { target: to }),
    ...{ n_best: 3, alignment: true },
  };
  const libre = { q: text, source: from || "auto", target };
  const chat = { model, messages: [{ role: "user", content: text }] };
  const string = pythonString;
  const fields = `"text": ${string(text)}, "model": ${string(model)}, "n_best": 3`;
  const client = [
    "from libretranslatepy import LibreTranslateAPI  # pip install libretranslatepy",
    "",
    `libre = LibreTranslateAPI("${base}/"${key ? ', "YOUR_KEY"' : ""})`,
    `print(libre.translate(${string(text)}, ${string(libre.source)}, ${string(libre.target)}))`,
  ].join("\n");
  const messages = `[{"role": "user", "content": ${string(text)}}]`;
  const call = `chat.completions.create(model=${string(model)}, messages=${messages})`;
  /** @type {[string, string, string][]} */
  const asLibre = [
    ["libretranslate", "curl", curl(`${base}/translate`, key ? { ...libre, api_key: "YOUR_KEY" } : libre, false)],
    ["libretranslatepy", "Python", client],
  ];
  return [
    ["native", "curl", curl(`${base}/api/v1/translate`, native, key)],
    ["python", "Python", python(`${base}/api/v1/translate`, fields, "text", key)],
    ...(target ? asLibre : []), // its clients need a target language
    ["openai", "curl", curl(`${base}/v1/chat/completions`, chat, key)],
    ["openai-python", "Python", openai(base, call, "message.content", key)],
    ["regard", "Python", offline(`translate(${string(text)}).text`, text)],
  ];
};

/** @type {Examples} */
const generation = (base, { text, model, generateRequest }, key) => {
  const string = pythonString;
  const native = generateRequest ?? { prompt: text, model };
  const fields = `"prompt": ${string(text)}, "model": ${string(model)}, "max_tokens": 20`;
  const call = `completions.create(model=${string(model)}, prompt=${string(text)}, max_tokens=20)`;
  return [
    ["native", "curl", curl(`${base}/api/v1/generate`, native, key)],
    ["python", "Python", python(`${base}/api/v1/generate`, fields, "text", key)],
    ["openai", "curl", curl(`${base}/v1/completions`, { model, prompt: text, max_tokens: 20 }, key)],
    ["openai-python", "Python", openai(base, call, "text", key)],
    ["regard", "Python", offline(`generate(${string(text)}, max_tokens=20).text`, text)],
  ];
};

/** @type {Examples} */
const classification = (base, { text, model }, key) => {
  const fields = `"text": ${pythonString(text)}, "model": ${pythonString(model)}`;
  return [
    ["native", "curl", curl(`${base}/api/v1/classify`, { text, model }, key)],
    ["python", "Python", python(`${base}/api/v1/classify`, fields, "label", key)],
    ["regard", "Python", offline(`classify(${pythonString(text)}).label`, text)],
  ];
};

/** @param {Context} context @param {Example} example */
function shown({ t }, { id, language, code }) {
  const button = h("button", { id: `copy-${id}`, type: "button" }, t("copy"));
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code);
    button.textContent = t("copied");
    setTimeout(() => (button.textContent = t("copy")), 1500);
  });
  return h(
    "section",
    { class: "request" },
    h("div", { class: "request-head" }, h("h2", {}, t(`api.${id}`)), h("span", { class: "tag" }, language), button),
    h("pre", { class: "scroll", tabindex: 0, "aria-label": t(`api.${id}`) }, code),
  );
}

/** @type {import("../frame.js").Screen} */
export const api = {
  id: "api",
  sign: "{}",
  alone: true,
  render: async (context) => {
    const { server, state, t } = context;
    const text = state.text.trim() ? state.text : t("api.text");
    const target = await server.target(state, text);
    const { task } = server.model(state);
    const generateRequest = server.generateRequest({ ...state, text });
    const current = { ...server.way(state), task, text, target, generateRequest };
    return {
      note: task === "classify" ? "api.note" : `api.note.${task}`,
      controls: [h("a", { href: "/docs" }, t("api.docs")), h("a", { href: "/openapi.json" }, "OpenAPI")],
      body: h(
        "div",
        { class: "requests" },
        examples(location.origin, current, hasKey()).map((example) => shown(context, example)),
      ),
    };
  },
};
