// A block as a whole, small: where seats are free, and which part the grid shows. A touch moves the grid there.

import { h } from "../dom.js";

const CELL = 6;
const COLORS = { free: "--seat-free", held: "--seat-held", sold: "--seat-sold", mine: "--seat-mine", pending: "--seat-mine" };

/** @param {import("./blocks.js").Block} block @param {(column: number) => void} onJump */
export function overview(block, onJump) {
  const canvas = h("canvas.overview", { width: block.width * CELL, height: block.rows.length * CELL, "aria-hidden": "true" });
  canvas.onclick = ({ offsetX }) => onJump(Math.floor((offsetX / canvas.clientWidth) * block.width));
  return {
    node: canvas,
    update(stateOf, { first, last }) {
      const brush = canvas.getContext("2d");
      const style = getComputedStyle(canvas);
      const colors = Object.fromEntries(Object.entries(COLORS).map(([state, name]) => [state, style.getPropertyValue(name)]));
      brush.clearRect(0, 0, canvas.width, canvas.height);
      block.rows.forEach(({ seats }, line) => seats.forEach((seat, column) => {
        brush.fillStyle = colors[stateOf(seat)];
        brush.globalAlpha = column >= first && column < last ? 1 : 0.45;
        brush.fillRect(column * CELL + 0.5, line * CELL + 0.5, CELL - 1, CELL - 1);
      }));
      brush.globalAlpha = 1;
      brush.strokeStyle = style.getPropertyValue("--accent");
      brush.lineWidth = 2;
      brush.strokeRect(first * CELL + 1, 1, (last - first) * CELL - 2, canvas.height - 2);
    },
  };
}
