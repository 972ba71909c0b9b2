// The current request as one would send it from elsewhere: ready to be copied, whatever the text holds.

/** @typedef {{ id: string, language: string, code: string }} Example */
/** @typedef {{ text: string, model: string, from: string, to: string }} Asked */

/**
 * As one word of a shell, whatever it holds.
 * @param {string} text
 */
export function shellWord(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * As a string of Python: JSON's strings are, but for half characters, which no text here has.
 * @param {string} text
 */
export const pythonString = (text) => JSON.stringify(text);

/** @param {object} body */
function told(body) {
  return JSON.stringify(body, null, 2);
}

/**
 * @param {string} address
 * @param {object} body
 * @param {boolean} key
 */
function curl(address, body, key) {
  const lines = [
    `curl -s ${address}`,
    ...(key ? ["-H 'Authorization: Bearer YOUR_KEY'"] : []),
    "-H 'Content-Type: application/json'",
    `-d ${shellWord(told(body))}`,
  ];
  return lines.join(" \\\n  ");
}

/**
 * @param {string} base Where the server is.
 * @param {Asked} asked
 * @param {boolean} key Whether it wants a key.
 * @returns {Example[]}
 */
export function examples(base, { text, model, from, to }, key) {
  const native = {
    text,
    model,
    ...(from && { source: from }),
    ...(to && { target: to }),
    n_best: 3,
    alignment: true,
  };
  const libre = { q: text, source: from || "auto", target: to };
  const chat = { model, messages: [{ role: "user", content: text }] };
  const secret = key ? "YOUR_KEY" : "none";
  const string = pythonString;
  return [
    { id: "native", language: "curl", code: curl(`${base}/api/v1/translate`, native, key) },
    {
      id: "python",
      language: "Python",
      code: [
        "import json",
        "from urllib.request import Request, urlopen",
        "",
        `body = {"text": ${string(text)}, "model": ${string(model)}, "n_best": 3}`,
        `headers = {"Content-Type": "application/json"${key ? ', "Authorization": "Bearer YOUR_KEY"' : ""}}`,
        `request = Request("${base}/api/v1/translate", json.dumps(body).encode(), headers)`,
        "with urlopen(request) as answer:",
        '    print(json.load(answer)["items"][0]["text"])',
      ].join("\n"),
    },
    {
      id: "libretranslate",
      language: "curl",
      code: curl(`${base}/translate`, key ? { ...libre, api_key: "YOUR_KEY" } : libre, false),
    },
    {
      id: "libretranslatepy",
      language: "Python",
      code: [
        "from libretranslatepy import LibreTranslateAPI  # pip install libretranslatepy",
        "",
        `libre = LibreTranslateAPI("${base}/"${key ? ', "YOUR_KEY"' : ""})`,
        `print(libre.translate(${string(text)}, ${string(libre.source)}, ${string(libre.target)}))`,
      ].join("\n"),
    },
    { id: "openai", language: "curl", code: curl(`${base}/v1/chat/completions`, chat, key) },
    {
      id: "openai-python",
      language: "Python",
      code: [
        "from openai import OpenAI  # pip install openai",
        "",
        `client = OpenAI(base_url="${base}/v1", api_key="${secret}")`,
        `messages = [{"role": "user", "content": ${string(text)}}]`,
        `answer = client.chat.completions.create(model=${string(model)}, messages=messages)`,
        "print(answer.choices[0].message.content)",
      ].join("\n"),
    },
    {
      id: "regard",
      language: "Python",
      code: [
        "import regard",
        "",
        "model = regard.load(FOLDER)  # the folder that this server was started with",
        `print(model.translate(${string(text)}).text)`,
        `model.look(${string(text)}).save("look.html")`,
      ].join("\n"),
    },
  ];
}
