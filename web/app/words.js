// The page's words. A language is one file in lang/: the browser's wishes are tried in order, then English.

/** @type {Record<string, any>} */
let words = {};
let tag = "en";

const MISSING = new Set();

async function load(candidate) {
  if (MISSING.has(candidate)) return false;
  try {
    words = (await import(`../lang/${candidate}.js`)).default;
    tag = candidate;
    return true;
  } catch {
    MISSING.add(candidate);
    return false;
  }
}

/** Choose a language. @param {string | null} wanted before those of the browser */
export async function chooseLanguage(wanted) {
  const wishes = [wanted, remembered(), ...navigator.languages].filter(Boolean).map((wish) => wish.toLowerCase());
  const candidates = wishes.flatMap((wish) => (/^[a-z]{2,3}(-|$)/.test(wish) ? [wish.split("-")[0]] : []));
  for (const candidate of new Set([...candidates, "en"])) {
    if (await load(candidate)) break;
  }
  document.documentElement.lang = tag;
}

function remembered() {
  try {
    return localStorage.getItem("jari:language");
  } catch {
    return null;
  }
}

/** A person chose; kept for the next visit. */
export async function changeLanguage(to) {
  try {
    localStorage.setItem("jari:language", to);
  } catch {
    // For this visit, then.
  }
  await chooseLanguage(to);
}

/** The language in use, such as "ko". */
export function language() {
  return tag;
}

/** What it calls itself. */
export function otherLanguages() {
  return Object.entries({ ko: "한국어", en: "English" }).filter(([known]) => known !== tag);
}

/**
 * A text. `{name}` in it is replaced; a text that depends on its arguments is a function of them.
 * @param {string} key
 * @param {Record<string, any>} [values]
 * @returns {string}
 */
export function t(key, values = {}) {
  const text = words[key];
  if (typeof text === "function") return text(values);
  return (text ?? key).replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

/** Whether there is such a text. */
export function has(key) {
  return key in words;
}

/** A failure in words: the language's own where it has some, else what the server said. */
export function explain(error) {
  const own = words.errors?.[error?.code];
  if (typeof own === "function") return own(error.details ?? {});
  return own ?? (error?.message || t("failed"));
}

/** One of several texts by language: `{ ko: "…", en: "…" }`, or one for all. */
export function oneOf(texts) {
  if (typeof texts !== "object" || texts === null) return texts ?? "";
  return texts[tag] ?? texts.en ?? Object.values(texts)[0] ?? "";
}
