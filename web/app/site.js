// What a team says of its sales in site.json: the page works without it.

import { oneOf } from "./words.js";

let site = { name: "", sales: [] };

export async function readSite() {
  try {
    const response = await fetch("site.json", { cache: "no-cache" });
    if (response.ok) site = { ...site, ...(await response.json()) };
  } catch {
    // Nothing is said, then.
  }
}

export const siteName = () => oneOf(site.name);
export const sales = () => site.sales;

/** What is said of one sale. */
export function saleOf(eventId) {
  const said = site.sales.find((sale) => sale.eventId === eventId) ?? {};
  return { currency: "KRW", ...said, title: oneOf(said.title) || eventId || siteName() };
}

/** Where a reservation is paid, if the team said so. */
export function paymentAddress(reservation) {
  const { paymentUrl } = saleOf(reservation.eventId);
  return paymentUrl?.replace(/\{(reservationId|amount|currency)\}/g, (_, name) => encodeURIComponent(reservation[name]));
}
