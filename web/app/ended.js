// The ends of the way: time over, sale over, given up, not let into the line.

import { h, icon } from "./dom.js";
import { sales } from "./site.js";
import { explain, has, t } from "./words.js";

const SIGNS = {
  expired: "M12 7v5l3 2M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18", over: "M5 12h14M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
  left: "M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9", refused: "M12 7v6M12 16.5v.5M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
};

/** @param {import("../jari.js").Jari} jari */
export function endedView(jari) {
  const { phase, refusal } = jari.state;
  const again = { expired: "standAtTheEnd", left: "joinAnew", refused: "tryAgain" }[phase];
  const node = h("section.card.narrow.centred", {},
    h("div.sign", {}, icon(SIGNS[phase])),
    h("h1", {}, t(`${phase}Title`)),
    h("p.lead", {}, phase === "refused" ? explain(refusal) : t(`${phase}Text`)),
    again && h("button.primary", { type: "button", onclick: () => jari.rejoin() }, t(again)),
    has(`${phase}More`) && h("p.muted", {}, t(`${phase}More`)),
    sales().length > 1 && h("a", { href: "?" }, t("otherSales")));
  return { node, title: () => t(`${phase}Title`) };
}
