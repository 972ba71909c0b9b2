// Converts the formulas of a walk from a small subset of LaTeX to MathML.

/** @typedef {{ name: string, children: (Formula | string)[], attributes?: Record<string, string> }} Formula */

const SIGNS = {
  cdot: "·",
  sum: "∑",
  infty: "∞",
  odot: "⊙",
  mu: "μ",
  sigma: "σ",
  epsilon: "ε",
  ldots: "…",
  lVert: "‖",
  rVert: "‖",
  leftarrow: "←",
  top: "⊤",
};
const NAMES = new Set(["max", "exp", "log", "sin", "cos", "tanh"]);
const IDENTIFIERS = new Set(["mu", "sigma", "epsilon", "infty", "ldots", "top"]);

/**
 * @param {string} name
 * @param {(Formula | string)[]} children
 * @param {Record<string, string>} [attributes]
 * @returns {Formula}
 */
const node = (name, children, attributes) => ({ name, children, ...(attributes && { attributes }) });

/** @param {string} latex */
function tokens(latex) {
  return latex.match(/\\[a-zA-Z]+|\\.|[0-9]+(?:\.[0-9]+)?|[^\s\\]/gu) ?? [];
}

class Reader {
  /** @param {string[]} rest */
  constructor(rest) {
    this.rest = rest;
  }

  /** Parse up to one of some tokens, and consume it. @param {string[]} ends */
  row(...ends) {
    /** @type {Formula[]} */
    const found = [];
    while (this.rest.length && !ends.includes(this.rest[0])) {
      const next = this.scripted();
      if (next) found.push(next);
    }
    this.rest.shift();
    return found.length === 1 ? found[0] : node("mrow", found);
  }

  /** An atom with its subscript and superscript. @returns {Formula | null} */
  scripted() {
    const base = this.atom();
    if (!base) return null;
    /** @type {Formula | null} */
    let below = null;
    /** @type {Formula | null} */
    let above = null;
    while (this.rest[0] === "_" || this.rest[0] === "^") {
      if (this.rest.shift() === "_") below = this.argument();
      else above = this.argument();
    }
    const under = base.children[0] === "∑";
    if (below && above) return node(under ? "munderover" : "msubsup", [base, below, above]);
    if (below) return node(under ? "munder" : "msub", [base, below]);
    return above ? node("msup", [base, above]) : base;
  }

  /** The argument of a command. @returns {Formula} */
  argument() {
    if (this.rest[0] === "{") {
      this.rest.shift();
      return this.row("}");
    }
    return this.atom() ?? node("mrow", []);
  }

  /** The letters in braces, unparsed. */
  letters() {
    this.rest.shift();
    const end = this.rest.indexOf("}");
    return this.rest
      .splice(0, end + 1)
      .slice(0, -1)
      .map((token) => token.replace(/^\\/, ""))
      .join("");
  }

  /** @returns {Formula | null} */
  atom() {
    const token = this.rest.shift() ?? "";
    if (token === "{") return this.row("}");
    if (token.startsWith("\\")) return this.command(token.slice(1));
    if (/^[0-9]/.test(token)) return node("mn", [token]);
    if (/^\p{L}$/u.test(token)) return node("mi", [token]);
    // Parentheses would otherwise grow with the superscripts beside them; \left and \right do.
    return node("mo", [token === "-" ? "−" : token], /[()|]/.test(token) ? { stretchy: "false" } : undefined);
  }

  /** @param {string} name @returns {Formula | null} */
  command(name) {
    if (name === "frac") return node("mfrac", [this.argument(), this.argument()]);
    if (name === "sqrt") return node("msqrt", [this.argument()]);
    if (name === "overline") return node("mover", [this.argument(), node("mo", ["¯"])]);
    if (name === "mathrm") return node("mi", [this.letters()], { mathvariant: "normal" });
    if (name === "text") return node("mtext", [this.words()]);
    if (name === "left" || name === "right")
      return node("mo", [this.rest.shift() ?? ""], { stretchy: "true" });
    if (name === "begin") return this.cases();
    if (NAMES.has(name)) return node("mi", [name]);
    if (name in SIGNS) {
      return node(IDENTIFIERS.has(name) ? "mi" : "mo", [SIGNS[name]]);
    }
    return name === "," || name === " " || name === "\\" ? node("mspace", [], { width: "0.3em" }) : null;
  }

  /** Words in braces, in which ␣ stands for a space. */
  words() {
    return this.letters().replaceAll("␣", " ");
  }

  /** `\begin{cases} a \\ b & c \end{cases}` @returns {Formula} */
  cases() {
    this.letters();
    /** @type {Formula[]} */
    const rows = [];
    /** @type {Formula[]} */
    let cells = [];
    for (;;) {
      const stop = this.rest.findIndex((token) => token === "\\\\" || token === "&" || token === "\\end");
      const inner = new Reader(this.rest.splice(0, stop));
      const end = this.rest.shift();
      cells.push(node("mtd", [inner.row()]));
      if (end === "&") continue;
      rows.push(node("mtr", cells));
      cells = [];
      if (end !== "\\\\") break;
    }
    this.letters();
    return node("mtable", rows); // the style sheet draws the brace, as few fonts have one that stretches
  }
}

/** @param {string} latex @returns {Formula} */
export function parse(latex) {
  const kept = latex.replace(/\\text\{([^}]*)\}/g, (_, words) => `\\text{${words.replaceAll(" ", "␣")}}`);
  return node("math", [new Reader(tokens(kept)).row()], { display: "block" });
}
