// What screen readers are told: the turn at once, the place now and then; and short notices for everybody.

import { h, icon } from "./dom.js";
import { t } from "./words.js";

const SELDOM_MS = 30_000;
const NOTICE_MS = 8_000;

const polite = h("p.spoken", { role: "status" });
const urgent = h("p.spoken", { role: "alert" });
const notices = h("div.notices");
let lastAt = -Infinity;

/** The regions, to stand in the document before anything is said. */
export const regions = [polite, urgent, notices];

/** Said now. */
export function announce(text) {
  polite.textContent = text;
  lastAt = performance.now();
}

/** Said when nothing was said lately. */
export function announceSeldom(text) {
  if (performance.now() - lastAt > SELDOM_MS) announce(text);
}

/** Said at once, whatever else is being said. */
export function alarm(text) {
  urgent.textContent = text;
}

/** Shown and said; gone after a while or by its button. @param {"info" | "bad"} kind */
export function notify(text, kind = "info") {
  const close = () => note.remove();
  const note = h(`div.notice.${kind}`, { role: kind === "bad" ? "alert" : "status" },
    h("span", {}, text),
    h("button.plain", { type: "button", "aria-label": t("close"), onclick: close }, icon("M6 6l12 12M18 6L6 18")));
  // Two at most: what is older has been read.
  while (notices.childElementCount > 1) notices.firstElementChild?.remove();
  notices.append(note);
  setTimeout(close, NOTICE_MS);
}

/** Taken away: what they were about is over. */
export function clearNotices() {
  notices.replaceChildren();
}
