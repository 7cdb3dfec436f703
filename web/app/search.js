// Trains by from, to and day, or a list of performances: what is for sale, and what is left of it.

import { day, money, number } from "./format.js";
import { explain, t } from "./words.js";
import { h, icon, say } from "./dom.js";
import { notify } from "./announce.js";
import { detailsOf, isTrain, lineOf, nameOf } from "./offering.js";
import { repeat } from "./repeat.js";

const REFRESH_MS = 5_000;
/** Fewer left than this are shown as few. */
const FEW = 20;

/**
 * @param {import("../jari.js").Jari} jari
 * @param {string} currency
 * @param {(offerings: any[]) => void} onFound every offering of the sale
 * @param {(offering: any, sectionId: string) => void} onChoose
 */
export function searchStage(jari, currency, onFound, onChoose) {
  const list = h("ul.offerings", { "aria-busy": "true" });
  const summary = h("p.muted", { role: "status" });
  const form = searchForm(() => loop.now());
  const node = h("div.stage", {}, form.node, summary, list);
  let cells = new Map();
  let shown = "";

  const showOfferings = (offerings) => {
    const ids = offerings.map((offering) => offering.offeringId).join();
    if (ids !== shown) {
      shown = ids;
      cells = new Map();
      list.replaceChildren(...offerings.map((offering) => card(offering, currency, cells, onChoose)));
      say(summary, offerings.length ? t("found", { n: offerings.length }) : t("foundNothing"));
    }
    for (const { offeringId, sections } of offerings) {
      for (const section of sections) cells.get(`${offeringId} ${section.sectionId}`)?.(section.remaining);
    }
    list.setAttribute("aria-busy", "false");
  };

  const loop = repeat(async () => {
    if (!form.isReady()) {
      const all = await jari.search();
      form.offer(all);
      onFound(all);
    }
    showOfferings(await jari.search(form.filters()));
  }, REFRESH_MS, (error) => {
    list.setAttribute("aria-busy", "false");
    if (!error.isPassing) notify(explain(error), "bad");
  });
  return { node, pause: loop.pause, resume: loop.now, end: loop.pause };
}

function card(offering, currency, cells, onChoose) {
  const details = detailsOf(offering);
  return h("li.card.offering", {},
    h("div.about", {}, h("h2", {}, nameOf(offering)), h("p.line", {}, lineOf(offering)),
      details.length > 0 && h("p.muted", {}, details.join(" · "))),
    h("div.sections", {}, offering.sections.map((section) => {
      const left = h("span.left");
      const button = h("button.section", { type: "button", onclick: () => onChoose(offering, section.sectionId) },
        h("span.name", {}, section.name), h("span.price", {}, money(section.price, currency)), left);
      cells.set(`${offering.offeringId} ${section.sectionId}`, (remaining) => {
        say(left, remaining ? t("left", { n: remaining, text: number(remaining) }) : t("soldOut"));
        left.dataset.level = remaining === 0 ? "none" : remaining < FEW ? "few" : "many";
        button.disabled = remaining === 0;
      });
      return button;
    })));
}

/** From, to and day, as far as the offerings differ in them. */
function searchForm(onChange) {
  const from = h("select", { id: "from" });
  const to = h("select", { id: "to" });
  const date = h("select", { id: "date" });
  const swap = h("button.secondary.swap", { type: "button", "aria-label": t("swap") }, icon("M8 7h11l-3-3M16 17H5l3 3"));
  const field = (label, select) => h("label.field", { for: select.id }, h("span", {}, t(label)), select);
  const node = h("form.card.search", { hidden: true, "aria-label": t("search") },
    field("from", from), swap, field("to", to), field("date", date));
  let offerings = [];
  let hasTrains = false;

  const fill = (select, values, text = (value) => value) => {
    const chosen = select.value;
    select.replaceChildren(...values.map((value) => h("option", { value }, text(value))));
    if (values.includes(chosen)) select.value = chosen;
  };
  const fillTo = () => fill(to, unique(offerings.filter((one) => one.from === from.value).map((one) => one.to)));

  from.onchange = () => {
    fillTo();
    onChange();
  };
  to.onchange = date.onchange = onChange;
  swap.onclick = () => {
    const [start, end] = [from.value, to.value];
    if (!offerings.some((one) => one.from === end && one.to === start)) return notify(t("noWayBack"));
    from.value = end;
    fillTo();
    to.value = start;
    onChange();
  };
  node.onsubmit = (event) => event.preventDefault();

  return {
    node,
    isReady: () => offerings.length > 0,
    offer(all) {
      offerings = all;
      hasTrains = all.some(isTrain);
      node.hidden = !hasTrains;
      fill(from, unique(all.map((one) => one.from).filter(Boolean)));
      fillTo();
      fill(date, unique(all.map((one) => one.date)).sort(), day);
    },
    filters: () => (hasTrains ? { from: from.value, to: to.value, date: date.value } : {}),
  };
}

const unique = (values) => [...new Set(values)];
