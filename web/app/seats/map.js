// The map of a section: its blocks, and as many columns of a block as the screen has room for.

import { number } from "../format.js";
import { h, icon, put, say, show } from "../dom.js";
import { t } from "../words.js";
import { blocksOf, freeIn } from "./blocks.js";
import { seatGrid } from "./grid.js";
import { overview } from "./overview.js";

/**
 * @param {{isTrain: boolean, onPick: (seat: string) => void}} options
 */
export function seatMap({ isTrain, onPick }) {
  const tabs = h("div.blocks", { role: "group", "aria-label": t(isTrain ? "cars" : "blocks") });
  const front = h("p.front", {}, t(isTrain ? "frontTrain" : "frontStage"));
  const pager = h("div.pager", { hidden: true });
  const place = h("div.seats");
  const node = h("div.map", {}, tabs, pager, front, place);
  let blocks = [];
  let rowsKey = "";
  let section = { rows: [], taken: {} };
  let chosen = 0;
  let first = 0;
  let grid;
  let small;
  let stateOf = (_seat) => "free";

  const columns = () => {
    const block = blocks[chosen];
    const style = getComputedStyle(node);
    const step = Number.parseFloat(style.getPropertyValue("--seat-step")) || 28;
    const label = Number.parseFloat(style.getPropertyValue("--seat-label")) || 28;
    const fits = Math.max(4, Math.floor((node.clientWidth - label) / step));
    if (block.width <= fits) return { first: 0, last: block.width };
    first = Math.max(0, Math.min(first, block.width - fits));
    return { first, last: first + fits };
  };

  const step = (by, focus) => {
    const { first: from, last } = columns();
    if (by < 0 ? from === 0 : last >= blocks[chosen].width) return;
    first = from + by * (last - from);
    draw();
    if (focus) grid.focusColumn(by);
  };

  const draw = () => {
    const block = blocks[chosen];
    if (!block) return place.replaceChildren();
    const shown = columns();
    grid = seatGrid(block, shown, isTrain, onPick, (side) => step(side, true));
    grid.update(stateOf);
    place.replaceChildren(grid.node);
    const isPart = shown.last - shown.first < block.width;
    show(pager, isPart);
    small = isPart ? overview(block, (column) => {
      first = column - Math.floor((shown.last - shown.first) / 2);
      draw();
    }) : undefined;
    if (!small) return;
    const turn = (by, label, path, off) =>
      h("button.secondary", { type: "button", "aria-label": t(label), disabled: off, onclick: () => step(by, false) }, icon(path));
    pager.replaceChildren(small.node, h("div.turn", {},
      turn(-1, "columnsBefore", "M15 5l-7 7 7 7", shown.first === 0),
      h("span", { role: "status" }, t("columns", { first: shown.first + 1, last: shown.last, all: block.width })),
      turn(1, "columnsAfter", "M9 5l7 7-7 7", shown.last >= block.width)));
    small.update(stateOf, shown);
  };

  const choose = (index) => {
    chosen = index;
    first = 0;
    drawTabs();
    draw();
  };

  const drawTabs = () => {
    show(tabs, blocks.length > 1);
    tabs.replaceChildren(...blocks.map((block, index) => {
      const free = h("span.left");
      const name = t(isTrain ? "car" : "block", { name: block.name });
      return h("button.block", { type: "button", "aria-pressed": String(index === chosen), onclick: () => choose(index) },
        h("span", {}, name), free);
    }));
    countFree();
  };

  const countFree = () => blocks.forEach((block, index) => {
    const button = tabs.children[index];
    const free = freeIn(block, section.taken);
    say(button.lastElementChild, number(free));
    button.lastElementChild.dataset.level = free === 0 ? "none" : "many";
    put(button, "aria-label", `${button.firstElementChild.textContent}, ${t("left", { n: free, text: number(free) })}`);
  });

  // A phone that is turned has room for other columns.
  let width = 0;
  const observer = new ResizeObserver(() => {
    if (node.clientWidth === width || !blocks.length) return;
    width = node.clientWidth;
    draw();
  });
  observer.observe(node);

  return {
    node,
    end: () => observer.disconnect(),
    /** A newer map, or newer seats of one's own. */
    update(newer, newStateOf) {
      stateOf = newStateOf;
      section = newer;
      const key = newer.rows.map((row) => row.name).join();
      if (key !== rowsKey) {
        rowsKey = key;
        blocks = blocksOf(newer.rows);
        const open = blocks.findIndex((block) => freeIn(block, newer.taken) > 0);
        return choose(Math.max(0, open));
      }
      grid?.update(stateOf);
      small?.update(stateOf, columns());
      countFree();
    },
    /** Show the block of a seat that was picked elsewhere. */
    reveal(seat) {
      const index = blocks.findIndex((block) => block.rows.some((row) => row.seats.includes(seat)));
      if (index < 0) return;
      const { first: from, last } = columns();
      const column = Math.max(...blocks[index].rows.map((row) => row.seats.indexOf(seat)));
      if (index === chosen && column >= from && column < last) return;
      chosen = index;
      first = column - Math.floor((last - from) / 2);
      drawTabs();
      draw();
    },
  };
}
