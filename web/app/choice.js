// The sales that site.json names, each with how it stands.

import { countdown, number } from "./format.js";
import { h, say } from "./dom.js";
import { oneOf, t } from "./words.js";
import { sales, siteName } from "./site.js";

/** @param {() => void} enterDefault where none of them is there */
export function choiceView(enterDefault) {
  const cards = sales().map((sale) => saleCard(sale));
  const list = h("ul.choices", {}, cards.map((card) => card.node));
  const node = h("section.narrow", {}, h("h1", {}, t("chooseSale")), list);
  const readAll = async () => {
    const found = await Promise.all(cards.map((card) => card.read()));
    if (found.length && !found.some(Boolean)) enterDefault();
  };
  readAll();
  const timer = setInterval(readAll, 10_000);
  return {
    node,
    title: () => siteName() || "Jari",
    tick: () => cards.forEach((card) => card.tick()),
    end: () => clearInterval(timer),
  };
}

function saleCard({ eventId, title }) {
  const status = h("span.badge");
  const fact = h("span.muted");
  const link = h("a.card.choice", { href: `?event=${encodeURIComponent(eventId)}` },
    h("strong", {}, oneOf(title)), h("span.line", {}, status, fact));
  const node = h("li", { hidden: true }, link);
  let progress = null;
  let offsetMs = 0;

  const tick = () => {
    if (!progress) return;
    const isUpcoming = progress.status === "UPCOMING";
    say(status, t(`sale${progress.status}`));
    status.dataset.status = progress.status;
    if (isUpcoming) say(fact, t("opensIn", { time: countdown(progress.opensAt - Date.now() - offsetMs) }));
    else if (progress.status === "CLOSED") say(fact, "");
    else say(fact, t("choiceFacts", { waiting: number(progress.totalWaiting), seats: number(progress.remainingSeats) }));
  };

  /** Whether there is such a sale; one that could not be asked may be there. */
  const read = async () => {
    try {
      const response = await fetch(`/api/status/progress?eventId=${encodeURIComponent(eventId)}`);
      const { success, data } = await response.json();
      if (!success) return response.status !== 404;
      progress = data;
      offsetMs = data.updatedAt - Date.now();
      node.hidden = false;
      tick();
    } catch {
      node.hidden = false;
    }
    return true;
  };
  return { node, read, tick };
}
