// The C of a layer and the TIR that it is printed from, side by side.
import { ask } from "./api.js";
import { byId, element, fill } from "./dom.js";
import { lazyPanel } from "./lazy.js";

let chosen = 0;

export function begin() {
  lazyPanel(byId("code"), {
    key: JSON.stringify,
    load: (plan, signal, seen) => ask("code", { plan }, signal, seen),
    show,
  });
}

function show(found, place) {
  const texts = element("div", { class: "pair" });
  const select = element("select", { id: "layer", onchange: () => put(Number(select.value)) },
    ...found.functions.map((one, at) => element("option", { value: at }, one.title)));
  const put = (at) => {
    chosen = at;
    const one = found.functions[at];
    fill(texts, listing(`C: ${one.function}`, one.c), listing("TIR", one.tir));
  };
  fill(place, element("p", { class: "field" }, element("label", { for: "layer" }, "Layer"), select), texts);
  chosen = Math.min(chosen, found.functions.length - 1);
  if (chosen >= 0) {
    select.value = chosen;
    put(chosen);
  }
}

function listing(title, text) {
  return element("div", {}, element("h3", {}, title),
    element("pre", { tabindex: "0", role: "region", "aria-label": title }, text));
}
