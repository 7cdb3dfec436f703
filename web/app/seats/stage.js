// One offering: its sections with grades and prices, the live map, "best together".

import { money, number } from "../format.js";
import { h, icon, put, say, show } from "../dom.js";
import { announce, notify } from "../announce.js";
import { isTrain, lineOf, nameOf } from "../offering.js";
import { repeat } from "../repeat.js";
import { explain, t } from "../words.js";
import { seatMap } from "./map.js";

const REFRESH_MS = 2_000;
/** As many as one may want together; the sale's own limit is told when it is met. */
const MOST = 10;

/**
 * @param {import("../../jari.js").Jari} jari
 * @param {string} currency
 * @param {any} offering
 * @param {string} sectionId
 * @param {() => void} onBack
 */
export function seatsStage(jari, currency, offering, sectionId, onBack) {
  const { offeringId } = offering;
  let chosen = sectionId;
  let section;
  const pending = new Set();
  const map = seatMap({ isTrain: isTrain(offering), onPick: (seat) => pick(seat) });
  const sections = sectionTabs(offering, currency, (id) => {
    chosen = id;
    section = undefined;
    loop.now();
  });
  const together = togetherForm((count) => hold(section?.rows.length ? { best: count } : { count }));
  const legend = h("ul.legend", { "aria-label": t("legend") },
    ["free", "mine", "held", "sold"].map((state) => h("li", {}, h("span.seat", { "data-state": state, "aria-hidden": "true" }), t(`seat_${state}`))));
  const general = h("p.general.muted", { hidden: true }, t("general"));
  const node = h("div.stage", {},
    h("div.stage-head", {}, h("button.secondary.back", { type: "button", onclick: onBack }, icon("M15 5l-7 7 7 7"), t("back")),
      h("div", {}, h("h2", {}, nameOf(offering)), h("p.muted", {}, lineOf(offering)))),
    sections.node, h("div.card", {}, together.node, legend, general, map.node));

  const mine = () => new Set(jari.state.held.flatMap((held) => (held.offeringId === offeringId ? held.seats : [])));

  const showMap = () => {
    if (!section) return;
    const own = mine();
    const { taken } = section;
    const stateOf = (seat) =>
      pending.has(seat) ? "pending" : own.has(seat) ? "mine" : { HELD: "held", SOLD: "sold" }[taken[seat]] ?? "free";
    const hasSeats = section.rows.length > 0;
    show(map.node, hasSeats);
    show(legend, hasSeats);
    show(general, !hasSeats);
    together.update(hasSeats, section.remaining);
    map.update(section, stateOf);
  };

  const loop = repeat(async () => {
    const asked = chosen;
    const { sections: [found] } = await jari.seats({ offeringId, sectionId: asked });
    if (asked !== chosen) return;
    section = found;
    sections.update(found);
    showMap();
  }, REFRESH_MS, (error) => !error.isPassing && notify(explain(error), "bad"));

  const attempt = async (seats, work) => {
    seats.forEach((seat) => pending.add(seat));
    showMap();
    try {
      return await work();
    } catch (error) {
      refused(error);
    } finally {
      seats.forEach((seat) => pending.delete(seat));
      showMap();
    }
  };

  /** What the map did not know yet is shown at once. */
  const refused = (error) => {
    notify(explain(error), "bad");
    if (error.code === "SEAT_TAKEN" && section) {
      const taken = { ...section.taken };
      for (const seat of error.details.seats ?? []) taken[seat] = "HELD";
      section = { ...section, taken };
    }
    loop.now();
  };

  const pick = (seat) => {
    if (pending.has(seat) || !section) return;
    if (mine().has(seat)) return attempt([seat], () => jari.release({ offeringId, seats: [seat] }));
    if (section.taken[seat]) return notify(t("seatIs", { seat, state: t(section.taken[seat] === "SOLD" ? "seat_sold" : "seat_held") }), "bad");
    return attempt([seat], () => jari.select({ offeringId, sectionId: chosen, seats: [seat] }));
  };

  const hold = (wanted) => attempt([], async () => {
    const { seats, seatCount } = await jari.select({ offeringId, sectionId: chosen, ...wanted });
    if (seats[0]) map.reveal(seats[0]);
    announce(seats.length ? t("gotSeats", { seats: seats.join(", ") }) : t("gotPlaces", { n: seatCount }));
    loop.now();
  });

  sections.choose(chosen);
  return {
    node,
    update: showMap,
    end() {
      loop.pause();
      map.end();
    },
  };
}

function sectionTabs(offering, currency, onChoose) {
  const buttons = offering.sections.map(({ sectionId, name, price, remaining }, index) => {
    const left = h("span.left", {}, number(remaining));
    const button = h("button.grade", { type: "button", onclick: () => choose(sectionId) },
      h("span.name", {}, h("span.swatch", { "data-grade": index % 6, "aria-hidden": "true" }), name),
      h("span.price", {}, money(price, currency)), left);
    return { sectionId, button, left };
  });
  const mark = (id) => buttons.forEach(({ sectionId, button }) => put(button, "aria-pressed", String(sectionId === id)));
  const choose = (id) => {
    mark(id);
    onChoose(id);
  };
  return {
    node: h("div.grades", { role: "group", "aria-label": t("sections") }, buttons.map(({ button }) => button)),
    choose: mark,
    update({ sectionId, remaining }) {
      const found = buttons.find((button) => button.sectionId === sectionId);
      if (found) say(found.left, t("left", { n: remaining, text: number(remaining) }));
    },
  };
}

/** So many side by side, or so many places where there are no seats. */
function togetherForm(onHold) {
  const count = h("output", { for: "fewer more" }, "2");
  let wanted = 2;
  const step = (by) => () => {
    wanted = Math.max(1, Math.min(MOST, wanted + by));
    say(count, String(wanted));
    write();
  };
  let hasSeats = true;
  const button = h("button.primary", { type: "button" });
  const write = () => say(button, t(hasSeats ? "bestTogether" : "takePlaces", { n: wanted }));
  button.onclick = async () => {
    button.disabled = true;
    await onHold(wanted);
    button.disabled = false;
  };
  const node = h("div.together", { role: "group", "aria-label": t("howMany") },
    h("div.stepper", {},
      h("button.secondary", { id: "fewer", type: "button", "aria-label": t("fewer"), onclick: step(-1) }, "−"), count,
      h("button.secondary", { id: "more", type: "button", "aria-label": t("more"), onclick: step(1) }, "+")), button);
  write();
  return {
    node,
    update(named, remaining) {
      if (named !== hasSeats) {
        hasSeats = named;
        write();
      }
      node.classList.toggle("none", remaining === 0);
    },
  };
}
