// The table of all boards; its rows come as CPUs are planned, and each leads to its plan.
import { ask } from "./api.js";
import { byId, element, fill } from "./dom.js";
import { announce } from "./messages.js";
import { change, onChange, plan } from "./state.js";
import { Task } from "./task.js";

const task = new Task(byId("boards-progress"), byId("boards-said"));
let table = null;

export function begin() {
  onChange((changed) => {
    if (changed.includes("model") || changed.includes("optimize")) {
      look(changed.includes("model"));
    }
    if (changed.includes("board")) {
      markChosen();
    }
  });
  byId("filter").addEventListener("input", filter);
}

async function look(isOther) {
  const asked = plan();
  if (asked === null) {
    return;
  }
  if (isOther) {
    fill(byId("boards-table"));
    table = null;
  }
  byId("boards-title").textContent = "Planning for every CPU …";
  const work = (signal, seen) =>
    ask("boards", { model: asked.model, optimize: asked.optimize }, signal, seen);
  if (await task.run(work, show)) {
    announce(byId("boards-title").textContent);
  } else if (byId("boards-said").childElementCount > 0) {
    byId("boards-title").textContent = "";
  }
}

function show(found) {
  table = found;
  byId("boards-title").textContent = found.title;
  ["boards-table", "boards-note", "filter-field"].forEach((id) => { byId(id).hidden = false; });
  const heads = found.columns.map((column) =>
    element("th", { scope: "col", class: found.right.includes(column) ? "number" : "" }, column));
  const body = element("tbody", {}, ...found.rows.map(row));
  const focused = document.activeElement.dataset.board;
  fill(byId("boards-table"),
    element("table", { class: "fits" }, element("thead", {}, element("tr", {}, ...heads)), body));
  filter();
  markChosen();
  if (focused) {
    byId("boards-table").querySelector(`[data-board="${CSS.escape(focused)}"]`)?.focus();
  }
}

function row(found) {
  const cells = found.cells.map((text, column) => {
    const name = table.columns[column];
    const kind = table.right.includes(name) ? "number" : "";
    if (column === 0) {
      const button = element("button", {
        type: "button", class: "link", "data-board": found.board, "aria-pressed": "false",
        onclick: () => choose(found.board),
      }, text);
      return element("th", { scope: "row" }, button);
    }
    if (column === found.cells.length - 1) {
      const mark = element("span", { class: `mark ${found.fits ? "good" : "bad"}`, "aria-hidden": "true" });
      return element("td", { class: "last", "data-title": name }, mark, text);
    }
    return element("td", { class: kind, "data-title": name }, text);
  });
  return element("tr", {}, ...cells);
}

function choose(board) {
  change({ board, target: null, ram_budget: null });
  // Where the plan stands below the table one would not see that anything happened.
  if (byId("plan").getBoundingClientRect().top > window.innerHeight / 2) {
    byId("plan").scrollIntoView();
  }
}

function markChosen() {
  const board = plan()?.board;
  byId("boards-table").querySelectorAll("button").forEach((button) => {
    const isChosen = button.dataset.board === board;
    button.setAttribute("aria-pressed", isChosen);
    button.closest("tr").classList.toggle("chosen", isChosen);
  });
}

function filter() {
  const wanted = byId("filter").value.trim().toLowerCase();
  byId("boards-table").querySelectorAll("tbody tr").forEach((line) => {
    const words = `${line.cells[0].textContent} ${line.cells[1].textContent}`.toLowerCase();
    line.hidden = !words.includes(wanted);
  });
}
