// Two plans side by side: one that was kept, and the one that is looked at.
import { ask } from "./api.js";
import { byId, element, fill, insertReport } from "./dom.js";
import { lazyPanel } from "./lazy.js";
import { announce } from "./messages.js";
import { titleOfPlan } from "./plan.js";
import { plan } from "./state.js";

const HEADS = { figures: "Figures", layers: "Layers that changed", options: "Options that differ" };
let kept = null;
let panel = null;

export function begin() {
  panel = lazyPanel(byId("compare"), {
    key: (now) => (kept === null ? null : JSON.stringify([kept, now])),
    load: (now, signal, seen) => ask("compare", { before: kept, after: now }, signal, seen),
    show,
  });
  fill(panel.place, element("p", { class: "soft" },
    "“Keep to compare” keeps the plan that is shown. Then change the goal, the budget, the board or the model, and come back."));
  byId("keep").addEventListener("click", keep);
}

function keep() {
  kept = plan();
  byId("keep").textContent = "Kept";
  announce(`kept to compare: ${titleOfPlan()}`);
  setTimeout(() => { byId("keep").textContent = "Keep to compare"; }, 1500);
  panel.refresh();
}

function show(found, place) {
  const side = (name, title) => element("div", {}, element("dt", {}, name), element("dd", {}, title));
  fill(place, element("dl", { class: "sides" }, side("before", found.before), side("after", found.after)));
  for (const [name, html] of Object.entries(found.tables)) {
    const table = element("div");
    insertReport(table, html);
    place.append(element("h3", {}, HEADS[name]), table);
  }
  place.append(element("p", { class: "soft small" }, found.note));
}
