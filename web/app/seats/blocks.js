// How a section's rows fall into blocks: cars of a train, stands of a hall. What rows have in common before their
// last hyphen names the block.

/** @typedef {{name: string, seats: string[]}} Row */
/** @typedef {{name: string, rows: {label: string, name: string, seats: string[]}[], width: number, size: number}} Block */

/** @param {Row[]} rows @returns {Block[]} in the order in which they come */
export function blocksOf(rows) {
  const blocks = new Map();
  for (const { name, seats } of rows) {
    const cut = name.lastIndexOf("-");
    const block = name.slice(0, Math.max(0, cut));
    if (!blocks.has(block)) blocks.set(block, { name: block, rows: [], width: 0, size: 0 });
    const found = blocks.get(block);
    found.rows.push({ label: name.slice(cut + 1), name, seats });
    found.width = Math.max(found.width, seats.length);
    found.size += seats.length;
  }
  return [...blocks.values()];
}

/** What stands on a seat: its name without its row's. */
export const seatLabel = (row, seat) => (seat.startsWith(row.name) ? seat.slice(row.name.length).replace(/^-/, "") : seat);

/** How many of a block's seats are free. */
export function freeIn(block, taken) {
  let free = block.size;
  for (const row of block.rows) for (const seat of row.seats) if (taken[seat]) free -= 1;
  return free;
}
