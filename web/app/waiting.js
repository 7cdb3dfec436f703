// In the line: the place, how far it has come, how long it may take.

import { about, number } from "./format.js";
import { announceSeldom, notify } from "./announce.js";
import { h, say, show } from "./dom.js";
import { drawPanel } from "./draw.js";
import { advice, facts, leaveButton, messageBox } from "./line.js";
import { t } from "./words.js";

/** @param {import("../jari.js").Jari} jari */
export function waitingView(jari) {
  const place = h("p.place");
  const bar = h("div.bar", { role: "progressbar", "aria-label": t("progress"), "aria-valuemin": 0, "aria-valuemax": 100 },
    h("div.fill"));
  const wait = h("p.wait");
  const note = h("p.message", { hidden: true });
  const message = messageBox();
  const numbers = facts(["ahead", "behind", "seatsLeft"]);
  const draw = drawPanel(jari);
  const node = h("section.card.narrow.centred", {},
    h("h1", {}, t("waitingTitle")), h("p.muted", {}, t("yourPlace")), place, bar, wait, note, message.node, numbers.node,
    advice("adviceReload", "adviceTab", "adviceTabs"), draw.node, leaveButton(jari));
  let told = false;

  const showBar = () => {
    const percent = (jari.progress() * 100).toFixed(1);
    bar.style.setProperty("--done", `${percent}%`);
    bar.setAttribute("aria-valuenow", String(Math.floor(percent)));
  };

  return {
    node,
    tick: showBar,
    title: () => t("titleWaiting", { rank: number(jari.state.rank ?? 0) }),
    update(state) {
      const { rank, ahead, behind, remainingSeats, estimatedWaitSeconds, saleStatus } = state;
      say(place, rank === null ? "…" : number(rank));
      numbers.set("ahead", ahead === null ? "–" : t("people", { n: ahead, text: number(ahead) }));
      numbers.set("behind", behind === null ? "–" : t("people", { n: behind, text: number(behind) }));
      numbers.set("seatsLeft", remainingSeats === null ? "–" : number(remainingSeats));
      const isPaused = saleStatus === "PAUSED";
      const isSoldOut = remainingSeats === 0;
      say(note, isPaused ? t("paused") : isSoldOut ? t("allTaken") : "");
      show(note, isPaused || isSoldOut);
      say(wait, waitText(estimatedWaitSeconds, isPaused || isSoldOut));
      message.update(state);
      draw.update(state);
      showBar();
      if (rank !== null) announceSeldom(`${t("announcePlace", { rank: number(rank) })} ${wait.textContent}`);
      if (state.returned && !told) {
        told = true;
        notify(t("returned"));
      }
    },
  };
}

function waitText(seconds, stands) {
  if (stands) return "";
  return seconds === null ? t("waitUnknown") : t("waitAbout", { time: about(seconds) });
}
