// Says that the network is away or the sale is crowded, and that the place is safe.

import { h, say, show } from "./dom.js";
import { t } from "./words.js";

export function networkBar() {
  const text = h("span");
  const node = h("div.network", { role: "status", hidden: true }, h("span.dot"), text);
  return {
    node,
    update({ connection, phase }) {
      show(node, connection !== "fine");
      if (connection === "fine") return say(text, "");
      const hasPlace = !["entering", "refused"].includes(phase);
      node.dataset.connection = connection;
      say(text, `${t(connection)} ${hasPlace ? t("placeIsSafe") : ""}`.trim());
    },
  };
}
