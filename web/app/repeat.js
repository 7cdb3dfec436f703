// Reading again while somebody looks.

/** Intervals differ by a fifth, so that many pages do not ask at once. */
const jittered = (ms) => ms * (0.8 + 0.4 * Math.random());
const SLOWEST_MS = 30_000;

/**
 * Does the work now and again and again, not while the page is hidden, and more seldom while it fails.
 * @param {() => Promise<void>} work
 * @param {number} everyMs
 * @param {(error: any) => void} onError
 */
export function repeat(work, everyMs, onError) {
  let timer;
  let failures = 0;
  // What was begun before a pause or a newer start counts no more.
  let round = 0;

  const run = async () => {
    const mine = ++round;
    clearTimeout(timer);
    try {
      await work();
      failures = 0;
    } catch (error) {
      failures += 1;
      if (mine === round) onError(error);
    }
    if (mine === round) plan();
  };
  const plan = () => {
    timer = setTimeout(() => (document.hidden ? plan() : run()), jittered(Math.min(SLOWEST_MS, everyMs * 2 ** failures)));
  };
  run();
  return {
    now: run,
    pause() {
      round += 1;
      clearTimeout(timer);
    },
  };
}
