// What an offering is called: a train by its way and times, anything else by its place and day.

import { day } from "./format.js";
import { has, t } from "./words.js";

const SHOWN_ABOVE = new Set(["offeringId", "date", "sections", "train", "from", "to", "departs", "arrives", "venue", "starts"]);

export const isTrain = ({ from, to }) => Boolean(from && to);

/** What stands first: "KTX 101", "올림픽공원 체조경기장". */
export const nameOf = ({ train, venue, offeringId }) => train ?? venue ?? offeringId;

/** One line: which day, from where to where. */
export function lineOf(offering) {
  const { date, from, to, departs, arrives, starts } = offering;
  const way = isTrain(offering) ? `${from}${departs ? ` ${departs}` : ""} → ${to}${arrives ? ` ${arrives}` : ""}` : (starts ?? "");
  return [day(date), way].filter(Boolean).join(" · ");
}

/** What else its sale says of it, each as "name value". */
export function detailsOf(offering) {
  const rest = Object.entries(offering).filter(([name]) => !SHOWN_ABOVE.has(name));
  return rest.map(([name, value]) => `${has(`attribute_${name}`) ? t(`attribute_${name}`) : name} ${value}`);
}

const KEPT = "jari:offerings";

/** Keep what was bought in words: once it is bought, nothing can be searched any more. */
export function remember(offerings) {
  try {
    const kept = Object.fromEntries(offerings.map((offering) => [offering.offeringId, offering]));
    localStorage.setItem(KEPT, JSON.stringify(kept));
  } catch {
    // The reservation is shown with ids.
  }
}

/** The offering that was kept, else one that has only its id. */
export function recall(offeringId) {
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT) ?? "{}")[offeringId];
    if (kept) return kept;
  } catch {
    // As below.
  }
  return { offeringId, sections: [] };
}

/** A section's name. */
export const sectionName = (offering, sectionId) =>
  offering.sections.find((section) => section.sectionId === sectionId)?.name ?? sectionId;
