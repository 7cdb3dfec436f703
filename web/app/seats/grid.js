// A block's seats as a grid of buttons. Built once, then only what differs is touched: 2 000 seats stay quick.

import { h } from "../dom.js";
import { t } from "../words.js";
import { seatLabel } from "./blocks.js";

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity] };

/**
 * @param {import("./blocks.js").Block} block
 * @param {{first: number, last: number}} columns which are shown, the last one excluded
 * @param {boolean} isTrain cars have an aisle and few seats a row
 * @param {(seat: string) => void} onPick
 * @param {(step: number) => void} onEdge arrow keys left the shown columns
 */
export function seatGrid(block, columns, isTrain, onPick, onEdge) {
  /** @type {Map<string, {button: HTMLButtonElement, state: string, at: [number, number]}>} */
  const cells = new Map();
  /** @type {string[][]} */
  const lines = block.rows.map((row) => row.seats.slice(columns.first, columns.last));
  const node = h("div.grid", { role: "grid", "aria-label": t("seatMap") });
  const aisle = isTrain && block.width > 2 && block.width < 7 ? Math.ceil(block.width / 2) : 0;
  node.classList.toggle("train", aisle > 0);
  node.style.setProperty("--columns", String(columns.last - columns.first));
  let focused = "";

  const fragment = document.createDocumentFragment();
  block.rows.forEach((row, line) => {
    const seats = lines[line].map((seat, column) => {
      const button = h("button.seat", { type: "button", role: "gridcell", tabindex: -1 }, seatLabel(row, seat));
      button.dataset.seat = seat;
      if (aisle && column === aisle) button.classList.add("aisle");
      cells.set(seat, { button, state: "", at: [line, column] });
      return button;
    });
    fragment.append(h("div.row", { role: "row" }, h("span.label", { role: "rowheader" }, row.label), seats));
  });
  node.append(fragment);

  const focusable = (seat) => {
    const old = cells.get(focused);
    if (old) old.button.tabIndex = -1;
    focused = seat;
    const cell = cells.get(seat);
    if (cell) cell.button.tabIndex = 0;
    return cell;
  };
  focusable(lines.find((line) => line.length)?.[0] ?? "");

  node.onclick = ({ target }) => {
    const seat = target.closest("button.seat")?.dataset.seat;
    if (seat) {
      focusable(seat);
      onPick(seat);
    }
  };
  node.onfocusin = ({ target }) => target.dataset.seat && focusable(target.dataset.seat);
  node.onkeydown = (event) => {
    const move = MOVES[event.key];
    const cell = cells.get(focused);
    if (!move || !cell) return;
    event.preventDefault();
    const line = lines[cell.at[0] + move[0]] ?? lines[cell.at[0]];
    const column = cell.at[1] + move[1];
    if (Number.isFinite(column) && (column < 0 || column >= line.length) && move[1] !== 0) return onEdge(move[1]);
    focusable(line[Math.max(0, Math.min(line.length - 1, column))])?.button.focus();
  };

  return {
    node,
    /** @param {(seat: string) => "free" | "held" | "sold" | "mine" | "pending"} stateOf */
    update(stateOf) {
      for (const [seat, cell] of cells) {
        const state = stateOf(seat);
        if (state === cell.state) continue;
        cell.state = state;
        const { button } = cell;
        button.dataset.state = state;
        button.setAttribute("aria-label", t("seatLabel", { seat, state: t(`seat_${state}`) }));
        button.setAttribute("aria-selected", String(state === "mine"));
        button.setAttribute("aria-disabled", String(state === "held" || state === "sold"));
      }
    },
    focusColumn(side) {
      const line = cells.get(focused)?.at[0] ?? 0;
      const seats = lines[line];
      focusable(side < 0 ? seats[seats.length - 1] : seats[0])?.button.focus();
    },
  };
}
