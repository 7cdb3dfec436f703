// Numbers, times and money as the language writes them.

import { has, language, t } from "./words.js";

export const number = (value) => new Intl.NumberFormat(language()).format(value);

/** An amount in a currency's smallest unit. */
export function money(amount, currency) {
  // Where people write it otherwise than the browser does: 59,800원.
  if (has(`money_${currency}`)) return t(`money_${currency}`, { text: number(amount) });
  return new Intl.NumberFormat(language(), { style: "currency", currency, currencyDisplay: "narrowSymbol" })
    .format(amount / 10 ** fractionDigits(currency));
}

const fractionDigits = (currency) =>
  new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits;

/** 04:59, 1:04:59, 2일 01:04:59. */
export function countdown(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1_000));
  const two = (value) => String(value).padStart(2, "0");
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3_600) % 24, Math.floor(seconds / 60) % 60];
  const clock = `${two(minutes)}:${two(seconds % 60)}`;
  if (days > 0) return `${t("days", { n: days })} ${two(hours)}:${clock}`;
  return hours > 0 ? `${hours}:${clock}` : clock;
}

/** About how long, in words. */
export function about(seconds) {
  if (seconds < 60) return t("lessThanAMinute");
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 60) return t("minutes", { n: minutes });
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  return rest ? t("hoursMinutes", { hours, minutes: rest }) : t("hours", { n: hours });
}

/** A moment, to the minute. */
export const moment = (ms) =>
  new Intl.DateTimeFormat(language(), { dateStyle: "medium", timeStyle: "short" }).format(ms);

/** A calendar day "2026-09-24", with its weekday; the same everywhere on earth. */
export const day = (date) =>
  new Intl.DateTimeFormat(language(), { month: "long", day: "numeric", weekday: "short", timeZone: "UTC" })
    .format(new Date(`${date}T00:00:00Z`));
