// Writes an output word by word, each with the light on its source, as long as nobody interferes.

const PACE = 340; // milliseconds per word
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export class LivingText {
  /** @param {(i: number) => void} light Called with each word that is written; −1 at the end. */
  constructor(light) {
    this.light = light;
    this.timer = 0;
    /** @type {HTMLElement[]} */
    this.hidden = [];
  }

  get running() {
    return this.timer !== 0;
  }

  /** Show everything at once. */
  stop() {
    clearTimeout(this.timer);
    this.timer = 0;
    for (const node of this.hidden) node.classList.remove("unwritten");
    this.hidden = [];
  }

  /**
   * Write the words again; at once for those who want no motion.
   * @param {HTMLElement[]} nodes The words, in order.
   * @param {number[]} lit Their numbers, for `light`; −1: without a source.
   */
  write(nodes, lit) {
    this.stop();
    if (still() || !nodes.length) return;
    this.hidden = [...nodes];
    for (const node of nodes) node.classList.add("unwritten");
    const next = (i) => {
      if (i === nodes.length) {
        this.stop();
        return this.light(-1);
      }
      nodes[i].classList.remove("unwritten");
      this.light(lit[i]);
      this.timer = setTimeout(() => next(i + 1), lit[i] < 0 ? PACE / 3 : PACE);
    };
    next(0);
  }
}
