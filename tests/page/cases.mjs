// Collects test cases, so that one Node process runs them all.

const cases = [];

/**
 * @param {string} name
 * @param {() => void | Promise<void>} run
 */
export const test = (name, run) => cases.push({ name, run });

/** Runs all cases; returns the names and errors of those that failed. */
export async function failures() {
  const [count, failed] = [cases.length, []];
  for (const { name, run } of cases.splice(0))
    try {
      await run();
    } catch (error) {
      failed.push(`${name}: ${error.stack}`);
    }
  return { count, failed };
}
