// What was bought: its state, what is to be paid until when, giving it back.

import { confirmed, h, say, show } from "./dom.js";
import { announce, notify } from "./announce.js";
import { countdown, moment, money } from "./format.js";
import { lineOf, nameOf, recall, sectionName } from "./offering.js";
import { paymentAddress } from "./site.js";
import { explain, t } from "./words.js";

const OVER = ["CANCELLED", "EXPIRED"];

/** @param {import("../jari.js").Jari} jari */
export function reservationView(jari) {
  const badge = h("span.badge");
  const heading = h("h1", {}, t("bookedTitle"));
  const due = h("div.due", { hidden: true });
  const clock = h("strong.left-time", { role: "timer" });
  const dueText = h("p");
  const pay = h("a.button.primary", { hidden: true, rel: "noopener" }, t("pay"));
  due.append(dueText, clock, pay);
  const ticket = h("div.ticket", { "aria-busy": "true" }, h("div.spinner"));
  const cancel = h("button.secondary", { type: "button", hidden: true, onclick: () => giveBack() }, t("cancel"));
  const again = h("button.primary", { type: "button", hidden: true, onclick: () => jari.rejoin() }, t("joinAnew"));
  const failure = h("p.bad", { role: "alert", hidden: true });
  const node = h("section.card.narrow", {},
    h("div.centred", {}, badge, heading), due, ticket, failure, h("div.actions", {}, cancel, again));
  const ended = new AbortController();
  let reservation;

  const showReservation = (read) => {
    if (reservation && reservation.status !== read.status) announce(t(`status_${read.status}`));
    reservation = read;
    const { status, paymentDueAt, places, amount, currency, seatCount, reservationId, createdAt } = read;
    badge.dataset.status = status;
    say(badge, t(`status_${status}`));
    say(heading, t(OVER.includes(status) ? "bookingOverTitle" : "bookedTitle"));
    const isDue = status === "PENDING_PAYMENT" && Boolean(paymentDueAt);
    show(due, isDue);
    if (isDue) say(dueText, t("payUntil", { time: moment(paymentDueAt) }));
    const address = isDue && paymentAddress(read);
    show(pay, Boolean(address));
    if (address) pay.href = address;
    ticket.setAttribute("aria-busy", "false");
    ticket.replaceChildren(
      h("ul.items", {}, places.map(placeItem)),
      h("dl.values", {},
        h("dt", {}, t("seatCount")), h("dd", {}, t("places", { n: seatCount })),
        h("dt", {}, t("total")), h("dd", {}, h("strong", {}, money(amount, currency))),
        h("dt", {}, t("bookedAt")), h("dd", {}, moment(createdAt)),
        h("dt", {}, t("reservationId")), h("dd", {}, h("code", {}, reservationId))));
    show(cancel, !OVER.includes(status));
    show(again, OVER.includes(status));
  };

  const follow = async () => {
    try {
      await jari.settled(showReservation, ended.signal);
    } catch (error) {
      show(failure, true);
      say(failure, explain(error));
      ticket.replaceChildren();
      show(again, true);
    }
  };

  const giveBack = async () => {
    const sure = await confirmed({ title: t("cancelTitle"), text: t("cancelText"), yes: t("cancel"), no: t("keep"), isDanger: true });
    if (!sure) return;
    cancel.disabled = true;
    try {
      showReservation(await jari.cancel());
    } catch (error) {
      notify(explain(error), "bad");
    }
    cancel.disabled = false;
  };

  follow();
  return {
    node,
    title: () => heading.textContent,
    tick() {
      const leftMs = (reservation?.paymentDueAt ?? 0) - jari.now();
      say(clock, leftMs > 0 ? countdown(leftMs) : "");
      clock.classList.toggle("soon", leftMs < 60_000);
    },
    end: () => ended.abort(),
  };
}

function placeItem({ offeringId, sectionId, seats, count }) {
  const offering = recall(offeringId);
  const what = seats.length ? seats.join(", ") : t("places", { n: count });
  return h("li", {}, h("div", {}, h("strong", {}, `${sectionName(offering, sectionId)} ${what}`),
    h("span.muted", {}, [nameOf(offering), offering.date && lineOf(offering)].filter(Boolean).join(" · "))));
}
