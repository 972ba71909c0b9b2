// Server-sent events, as they come.

/**
 * Events out of what has come; what is not whole yet is given back.
 * @param {string} text
 * @returns {{ events: { name: string, data: any }[], rest: string }}
 */
export function parsed(text) {
  const blocks = text.split("\n\n");
  const rest = blocks.pop() ?? "";
  const events = blocks
    .map((block) => {
      const field = (/** @type {string} */ name) =>
        block
          .split("\n")
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2);
      const data = field("data");
      return data === undefined ? null : { name: field("event") ?? "message", data: JSON.parse(data) };
    })
    .filter((each) => each !== null);
  return { events, rest };
}

/**
 * The events of an answer, those that came together as one list.
 * @param {Response} response
 * @returns {AsyncGenerator<{ name: string, data: any }[]>}
 */
export async function* arriving(response) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (let came = await reader.read(); !came.done; came = await reader.read()) {
    const found = parsed(rest + decoder.decode(came.value, { stream: true }));
    rest = found.rest;
    if (found.events.length) yield found.events;
  }
}
