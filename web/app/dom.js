// Elements.

/**
 * An element: `h("button.primary", { onclick: buy, disabled: true }, "Buy")`. Functions are listeners; true and false
 * set and leave out an attribute, as null does. Children that are null or false are left out.
 * @param {string} selector tag, then classes
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 * @returns {any}
 */
export function h(selector, attributes = {}, ...children) {
  const [tag, ...classes] = selector.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) put(node, name, value);
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Set an attribute as `h` does. */
export function put(node, name, value) {
  if (typeof value === "function") node[name] = value;
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : value);
}

/** Change a text only where it differs: a live region speaks of every change. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Show or hide. */
export function show(node, isShown) {
  node.hidden = !isShown;
}

const SVG = "http://www.w3.org/2000/svg";

/** A drawing of one stroke, 24 by 24; it says nothing to screen readers. */
export function icon(path) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("icon");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

/** Ask before something that cannot be undone. @returns {Promise<boolean>} */
export function confirmed({ title, text, yes, no, body = null, isDanger = false }) {
  return new Promise((resolve) => {
    const close = (answer) => () => dialog.close(answer);
    const dialog = h("dialog.dialog", { "aria-labelledby": "dialog-title" },
      h("h2", { id: "dialog-title" }, title), text && h("p", {}, text), body,
      h("div.actions", {},
        h("button.secondary", { type: "button", onclick: close("no") }, no),
        h(isDanger ? "button.danger" : "button.primary", { type: "button", onclick: close("yes") }, yes)));
    dialog.onclose = () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    };
    document.body.append(dialog);
    dialog.showModal();
  });
}
