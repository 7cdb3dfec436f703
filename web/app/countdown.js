// Before the opening.

import { countdown, moment, number } from "./format.js";
import { announceSeldom } from "./announce.js";
import { h, say, show } from "./dom.js";
import { drawPanel } from "./draw.js";
import { advice, facts, leaveButton, messageBox } from "./line.js";
import { t } from "./words.js";

/** @param {import("../jari.js").Jari} jari */
export function countdownView(jari) {
  const clock = h("p.clock", { role: "timer" });
  const opens = h("p.muted");
  const lead = h("p.lead");
  const message = messageBox();
  const numbers = facts(["waitingNow", "seatsOnSale"]);
  const draw = drawPanel(jari);
  const leave = leaveButton(jari);
  const tips = h("div");
  const node = h("section.card.narrow.centred", {},
    h("h1", {}, t("beforeTitle")), clock, opens, lead, message.node, numbers.node, tips, draw.node, leave);
  let { opensAt } = jari.state;
  let tippedFor;

  const tick = () => {
    const leftMs = (opensAt ?? 0) - jari.now();
    say(clock, leftMs > 0 ? countdown(leftMs) : t("opening"));
    clock.classList.toggle("words", leftMs <= 0);
    if (leftMs > 0) announceSeldom(t("opensIn", { time: countdown(leftMs) }));
  };

  return {
    node,
    tick,
    title: () => t("titleBefore", { time: countdown((opensAt ?? 0) - jari.now()) }),
    update(state) {
      const inLine = state.phase === "upcoming";
      opensAt = state.opensAt;
      say(opens, opensAt ? t("opensAt", { time: moment(opensAt) }) : "");
      say(lead, t(!inLine ? "leadNotOpen" : state.isDrawn ? "leadDrawn" : "leadFifo"));
      message.update(state);
      draw.update(state);
      show(numbers.node, inLine);
      numbers.set("waitingNow", state.totalWaiting === null ? "–" : number(state.totalWaiting));
      numbers.set("seatsOnSale", state.remainingSeats === null ? "–" : number(state.remainingSeats));
      show(leave, inLine);
      if (tippedFor !== inLine) {
        tippedFor = inLine;
        tips.replaceChildren(inLine ? advice("adviceReload", "adviceTab", "adviceTabs") : advice("adviceOpening"));
      }
      tick();
    },
  };
}
