// What is held: how long, how much; booking it.

import { confirmed, h, icon, put, say, show } from "./dom.js";
import { alarm, notify } from "./announce.js";
import { countdown, money } from "./format.js";
import { recall, lineOf, nameOf, remember, sectionName } from "./offering.js";
import { explain, t } from "./words.js";

/** The last moments are shown as such. */
const SOON_MS = 30_000;

/**
 * @param {import("../jari.js").Jari} jari
 * @param {string} currency
 * @param {Map<string, any>} offerings those seen so far
 */
export function basket(jari, currency, offerings) {
  const items = h("ul.items");
  const clock = h("strong.left-time", { role: "timer" });
  const total = h("strong.total");
  const book = h("button.primary.book", { type: "button", onclick: () => buy() }, t("book"));
  const node = h("aside.basket", { hidden: true, "aria-label": t("basket") },
    h("div.basket-inner", {},
      h("div.basket-head", {}, h("h2", {}, t("basket")), h("span.hold", {}, t("holdLeft"), " ", clock)),
      items, h("div.buy", {}, h("span.sum", {}, h("span.muted", {}, t("total")), total), book)));
  let warned = false;

  const offeringOf = (id) => offerings.get(id) ?? recall(id);
  const priceOf = ({ offeringId, sectionId }) =>
    offeringOf(offeringId).sections.find((section) => section.sectionId === sectionId)?.price;
  const sum = () => jari.state.held.reduce((all, held) => all + (priceOf(held) ?? Number.NaN) * held.count, 0);
  const describe = (held) => {
    const offering = offeringOf(held.offeringId);
    const what = held.seats.length ? held.seats.join(", ") : t("places", { n: held.count });
    return { name: nameOf(offering), line: offering.date ? lineOf(offering) : "", what, section: sectionName(offering, held.sectionId) };
  };

  const giveBack = (held) => async () => {
    try {
      await jari.release({ offeringId: held.offeringId, ...(held.seats.length && { seats: held.seats }) });
    } catch (error) {
      notify(explain(error), "bad");
    }
  };

  const buy = async () => {
    const { held } = jari.state;
    const list = h("ul.items", {}, held.map((one) => itemOf(describe(one))));
    const sure = await confirmed({ title: t("confirmTitle"), text: sumText(sum(), currency), body: list, yes: t("confirm"), no: t("stay") });
    if (!sure) return;
    put(book, "disabled", true);
    say(book, t("booking"));
    // Kept first: once it is booked, the page shows the reservation.
    remember(held.map((one) => offeringOf(one.offeringId)));
    try {
      await jari.book();
    } catch (error) {
      notify(explain(error), "bad");
    }
    put(book, "disabled", false);
    say(book, t("book"));
  };

  return {
    node,
    tick() {
      const { holdExpiresAt, held } = jari.state;
      if (!holdExpiresAt || !held.length) return;
      const leftMs = holdExpiresAt - jari.now();
      say(clock, countdown(leftMs));
      node.classList.toggle("soon", leftMs < SOON_MS);
      if (leftMs < SOON_MS && !warned) alarm(t("holdEndsSoon"));
      warned = leftMs < SOON_MS;
    },
    update({ held }) {
      show(node, held.length > 0);
      items.replaceChildren(...held.map((one) => itemOf(describe(one), giveBack(one))));
      say(total, sumText(sum(), currency));
      this.tick();
    },
  };
}

const sumText = (sum, currency) => (Number.isFinite(sum) ? money(sum, currency) : "");

function itemOf({ name, line, what, section }, onRemove) {
  return h("li", {}, h("div", {}, h("strong", {}, `${section} ${what}`), h("span.muted", {}, [name, line].filter(Boolean).join(" · "))),
    onRemove && h("button.plain", { type: "button", "aria-label": t("giveBack", { what: `${section} ${what}` }), onclick: onRemove },
      icon("M6 6l12 12M18 6L6 18")));
}
