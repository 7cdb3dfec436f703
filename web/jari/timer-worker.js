// Rings for timers.js, also while the page is hidden.
onmessage = ({ data: { id, afterMs } }) => setTimeout(() => postMessage(id), afterMs);
