// On the way into the line.

import { h } from "./dom.js";
import { t } from "./words.js";

export function enteringView() {
  return {
    node: h("section.card.narrow.centred", {}, h("div.spinner", {}), h("h1", {}, t("entering"))),
    title: () => t("entering"),
  };
}
