// What less RAM costs in instructions and flash; each program leads to its plan.
import { ask } from "./api.js";
import { byId, element, fill, insertReport } from "./dom.js";
import { lazyPanel } from "./lazy.js";
import { change } from "./state.js";

export function begin() {
  lazyPanel(byId("trades"), {
    key: (plan) => JSON.stringify([plan.model, plan.board, plan.target]),
    load: (plan, signal, seen) => ask("frontier", { plan: { ...plan, ram_budget: null } }, signal, seen),
    show,
  });
}

function show(found, place) {
  const chart = element("div", { class: "scroll chart" });
  const table = element("div");
  fill(place,
    element("p", { class: "soft" }, "Every goal, and budgets of RAM between the fastest and the smallest program. All figures are estimates of planning."),
    chart, table);
  insertReport(chart, found.chart);
  insertReport(table, found.table);
  const rows = table.querySelectorAll("tbody tr");
  rows.forEach((row, at) => row.append(element("td", {}, choice(found.trials[at]))));
  table.querySelector("thead tr")?.append(element("th", {}, ""));
}

function choice(trial) {
  if (!trial.is_on_page) {
    return "";
  }
  const values = { optimize: trial.optimize, ram_budget: trial.ram_budget };
  const name = trial.ram_budget === null ? trial.optimize : `${trial.ram_budget.toLocaleString("en")} bytes`;
  return element("button", {
    type: "button", class: "link", "aria-label": `Show the plan of ${name}`,
    onclick: () => change(values),
  }, "Show");
}
