// "Check the draw": this browser recomputes its own place in the drawn line.

import { h, show } from "./dom.js";
import { explain, t } from "./words.js";

/** @param {import("../jari.js").Jari} jari */
export function drawPanel(jari) {
  const result = h("div", { role: "status" });
  const button = h("button.secondary", { type: "button", onclick: () => check() }, t("checkDraw"));
  const node = h("details.draw", { hidden: true },
    h("summary", {}, t("drawTitle")), h("p", {}, t("drawText")), button, result);

  const check = async () => {
    button.disabled = true;
    try {
      result.replaceChildren(...found(await jari.checkDraw()));
    } catch (error) {
      result.replaceChildren(h("p.bad", {}, explain(error)));
    }
    button.disabled = false;
  };

  return { node, update: ({ isDrawn }) => show(node, isDrawn) };
}

function found(check) {
  if (!check) return [];
  const verdict = h(`p.verdict.${check.result === "WRONG" ? "bad" : "good"}`, {}, t(`draw${check.result}`));
  const values = [
    ["drawCommitment", check.commitment], ["drawSeed", check.seed], ["drawSeedDigest", check.seedDigest],
    ["drawTokenDigest", check.tokenDigest], ["drawComputed", check.computed], ["drawTold", check.told],
  ].filter(([, value]) => value !== undefined);
  return [verdict, h("dl.values", {}, values.map(([name, value]) => [h("dt", {}, t(name)), h("dd", {}, h("code", {}, String(value)))]))];
}
