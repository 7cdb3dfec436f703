// The chime at one's turn. Browsers let a page sound only after somebody touched it: the first touch readies it.

let context;

const ready = () => {
  context ??= new AudioContext();
  context.resume();
};
addEventListener("pointerdown", ready, { once: true });
addEventListener("keydown", ready, { once: true });

/** Two soft notes, or none where the browser refuses. */
export function chime() {
  if (context?.state !== "running") return;
  for (const [pitch, at] of [[660, 0], [880, 0.18]]) {
    const tone = new OscillatorNode(context, { frequency: pitch });
    const volume = new GainNode(context, { gain: 0 });
    const start = context.currentTime + at;
    volume.gain.linearRampToValueAtTime(0.2, start + 0.02);
    volume.gain.exponentialRampToValueAtTime(0.001, start + 0.6);
    tone.connect(volume).connect(context.destination);
    tone.start(start);
    tone.stop(start + 0.65);
  }
}
