// What the two views of a line share: the operator's message, facts, leaving.

import { confirmed, h, say, show } from "./dom.js";
import { notify } from "./announce.js";
import { explain, t } from "./words.js";

/** What the operator tells everybody. */
export function messageBox() {
  const text = h("p");
  const node = h("div.message", { role: "status", hidden: true }, h("strong", {}, t("message")), text);
  return {
    node,
    update({ message }) {
      show(node, Boolean(message));
      say(text, message ?? "");
    },
  };
}

/** Names with values, to be read as pairs. */
export function facts(names) {
  const values = Object.fromEntries(names.map((name) => [name, h("dd", {}, "–")]));
  const pairs = names.map((name) => h("div", {}, h("dt", {}, t(name)), values[name]));
  return { node: h("dl.facts", {}, pairs), set: (name, text) => say(values[name], text) };
}

/** The button that gives the place up. */
export function leaveButton(jari) {
  const leave = async () => {
    const sure = await confirmed({
      title: t("leaveTitle"), text: t("leaveText"), yes: t("leave"), no: t("stay"), isDanger: true,
    });
    if (!sure) return;
    button.disabled = true;
    try {
      await jari.leave();
    } catch (error) {
      notify(explain(error), "bad");
    }
    button.disabled = false;
  };
  const button = h("button.plain.leave", { type: "button", onclick: leave }, t("leave"));
  return button;
}

/** What everybody in a line should know. */
export function advice(...keys) {
  return h("ul.advice", {}, keys.map((key) => h("li", {}, t(key))));
}
