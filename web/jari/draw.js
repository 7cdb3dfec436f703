// The check of the draw: anybody can recompute their own score from what is published.

/** Scores from here on belong to those who came after the opening: nothing was drawn for them. */
const AFTER_THE_DRAW = 2 ** 52;

/**
 * @typedef {object} DrawCheck
 * @property {"SECRET" | "LATE" | "UNKNOWN" | "GOOD" | "WRONG"} result SECRET: the seed is not published yet; LATE:
 *   this place came after the opening; UNKNOWN: the server has not told this place's score
 * @property {string} commitment what was published before the opening: SHA-256 of the seed
 * @property {string} [seed]
 * @property {string} [seedDigest] SHA-256 of the seed, computed here; must be the commitment
 * @property {string} [tokenDigest] SHA-256 of the token, as in the published list
 * @property {number} [computed] this place's score, computed here
 * @property {number} [told] this place's score, as the server told it
 */

const hexOf = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
const sha256 = (bytes) => crypto.subtle.digest("SHA-256", bytes);

/** The 52-bit score that a seed gives a token. */
export async function drawnScore(seed, token) {
  const digest = await sha256(new TextEncoder().encode(token.toLowerCase()));
  const key = await crypto.subtle.importKey("raw", bytesOf(seed), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const mac = new DataView(await crypto.subtle.sign("HMAC", key, digest));
  return { score: Number(mac.getBigUint64(0) >> 12n), tokenDigest: hexOf(digest) };
}

/**
 * Recompute a place's score and the commitment.
 * @param {{token: string, score?: number, commitment?: string}} place what was kept of it
 * @param {{shuffleCommitment?: string, shuffleSeed?: string}} progress what is published
 * @returns {Promise<DrawCheck | null>} null: this line is not drawn
 */
export async function checkDraw(place, progress) {
  const commitment = place.commitment ?? progress.shuffleCommitment;
  if (!commitment) return null;
  const seed = progress.shuffleSeed;
  if (!seed) return { result: "SECRET", commitment };
  const seedDigest = hexOf(await sha256(bytesOf(seed)));
  const { score: computed, tokenDigest } = await drawnScore(seed, place.token);
  const found = { commitment, seed, seedDigest, tokenDigest, computed, told: place.score };
  if (seedDigest !== commitment) return { result: "WRONG", ...found };
  if (place.score === undefined) return { result: "UNKNOWN", ...found };
  if (place.score >= AFTER_THE_DRAW) return { result: "LATE", ...found };
  return { result: computed === place.score ? "GOOD" : "WRONG", ...found };
}
