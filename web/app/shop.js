// Let in: find, pick, book, before the time is over.

import { alarm } from "./announce.js";
import { basket } from "./basket.js";
import { h, say } from "./dom.js";
import { countdown } from "./format.js";
import { messageBox } from "./line.js";
import { searchStage } from "./search.js";
import { seatsStage } from "./seats/stage.js";
import { saleOf } from "./site.js";
import { chime } from "./sound.js";
import { t } from "./words.js";

/** Said once each, when so much is left. */
const WARNINGS_S = [60, 30, 10];

/** @param {import("../jari.js").Jari} jari */
export function shopView(jari) {
  const { currency } = saleOf(jari.state.eventId);
  const offerings = new Map();
  const clock = h("strong.left-time", { role: "timer" });
  const message = messageBox();
  const place = h("div");
  const held = basket(jari, currency, offerings);
  const node = h("section.shop", {},
    h("div.turn-head", {}, h("div", {}, h("h1", {}, t("turnTitle")), h("p", {}, t("turnText"))),
      h("p.session", {}, h("span", {}, t("sessionLeft")), clock)),
    message.node, h("div.shop-body", {}, place, held.node));
  let warnings = [...WARNINGS_S];
  let seats;

  const found = (all) => {
    for (const offering of all) offerings.set(offering.offeringId, offering);
    held.update(jari.state);
  };
  const search = searchStage(jari, currency, found, (offering, sectionId) => {
    search.pause();
    seats = seatsStage(jari, currency, offering, sectionId, back);
    place.replaceChildren(seats.node);
    seats.node.scrollIntoView({ block: "nearest" });
  });
  const back = () => {
    seats?.end();
    seats = undefined;
    place.replaceChildren(search.node);
    search.resume();
  };
  place.replaceChildren(search.node);

  chime();
  alarm(t("turnTitle"));

  return {
    node,
    title: () => (document.hidden ? t("titleTurnHidden") : t("titleTurn", { time: clock.textContent })),
    tick() {
      const leftMs = (jari.state.activeExpiresAt ?? jari.now()) - jari.now();
      say(clock, jari.state.activeExpiresAt ? countdown(leftMs) : "");
      clock.classList.toggle("soon", leftMs < 30_000);
      if (jari.state.activeExpiresAt && leftMs > 0 && leftMs < (warnings[0] ?? 0) * 1_000) {
        alarm(t("sessionEnds", { n: warnings[0] }));
        warnings = warnings.filter((seconds) => seconds * 1_000 <= leftMs);
      }
      held.tick();
    },
    update(state) {
      message.update(state);
      held.update(state);
      seats?.update();
    },
    end() {
      search.end();
      seats?.end();
    },
  };
}
