// The page: which sale, which language, and which view shows where the person stands.

import { Jari } from "./jari.js";
import { clearNotices, regions } from "./app/announce.js";
import { h } from "./app/dom.js";
import { readSite, saleOf, sales, siteName } from "./app/site.js";
import { changeLanguage, chooseLanguage, language, otherLanguages, t } from "./app/words.js";
import { choiceView } from "./app/choice.js";
import { countdownView } from "./app/countdown.js";
import { endedView } from "./app/ended.js";
import { enteringView } from "./app/entering.js";
import { networkBar } from "./app/network.js";
import { reservationView } from "./app/reservation.js";
import { shopView } from "./app/shop.js";
import { waitingView } from "./app/waiting.js";

/**
 * A view: its element, what it does with a new state, and with time.
 * @typedef {{node: HTMLElement, title: () => string, update?: (state: import("./jari.js").State) => void,
 *   tick?: () => void, end?: () => void}} View
 */

const TICK_MS = 250;
const VIEWS = {
  idle: enteringView, entering: enteringView, notOpen: countdownView, upcoming: countdownView, waiting: waitingView,
  active: shopView, booked: reservationView, expired: endedView, over: endedView, left: endedView, refused: endedView,
};

const parameters = new URLSearchParams(location.search);
const [top, main, foot] = ["top", "main", "foot"].map((id) => document.getElementById(id));

/** @type {View | undefined} */
let view;
let shownBy;
/** @type {Jari | undefined} */
let jari;

/** The view that a state asks for; the same one goes on as long as it may. */
function showState() {
  const { state } = jari;
  const make = VIEWS[state.phase];
  const by = make === endedView ? state.phase : make;
  if (shownBy !== by) {
    const isFirst = shownBy === undefined || shownBy === enteringView;
    shownBy = by;
    replaceView(make(jari), !isFirst);
  }
  view.update?.(state);
  network.update(state);
  showTitle();
}

function replaceView(next, moveFocus) {
  view?.end?.();
  view = next;
  clearNotices();
  main.replaceChildren(network.node, view.node);
  scrollTo(0, 0);
  const heading = view.node.querySelector("h1");
  // Whoever reads by ear or key goes on at the new heading.
  if (moveFocus && heading) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
}

function showTitle() {
  const title = view.title();
  if (document.title !== title) document.title = title;
}

const network = networkBar();

function showHead(eventId) {
  const name = eventId === null ? siteName() : saleOf(eventId).title;
  const choose = (to) => async () => {
    await changeLanguage(to);
    if (jari) jari.language = to;
    start();
  };
  top.replaceChildren(
    h("a.brand", { href: "?", "aria-label": siteName() || "Jari" }, h("img", { src: "logo.svg", alt: "", width: 32, height: 32 })),
    h("p.sale", {}, name),
    h("nav.languages", { "aria-label": t("languages") },
      otherLanguages().map(([tag, itself]) => h("button.plain", { type: "button", lang: tag, onclick: choose(tag) }, itself))));
  foot.replaceChildren(h("p", {}, t("footer")), ...regions);
}

/** Show everything, in the language chosen now. */
function start() {
  shownBy = undefined;
  const eventId = parameters.get("event");
  if (!eventId && sales().length > 1) {
    showHead(null);
    replaceView(choiceView(() => enter(undefined)), false);
    showTitle();
    return;
  }
  enter(eventId ?? sales()[0]?.eventId);
}

function enter(eventId) {
  shownBy = undefined;
  showHead(eventId ?? "");
  if (!jari) {
    jari = new Jari({ eventId, language: language() });
    jari.addEventListener("change", showState);
    jari.enter();
  }
  showState();
}

await Promise.all([readSite(), chooseLanguage(parameters.get("lang"))]);
start();
setInterval(() => {
  view.tick?.();
  showTitle();
}, TICK_MS);
