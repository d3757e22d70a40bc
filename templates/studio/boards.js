// The table of all boards; its rows come as CPUs are planned, and each leads to its plan.
import { ask } from "./api.js";
import { byId, element, fill } from "./dom.js";
import { announce } from "./messages.js";
import { planHasCome } from "./plan.js";
import { change, onChange, plan } from "./state.js";
import { Task } from "./task.js";

const task = new Task(byId("boards-progress"), byId("boards-said"));
let table = null;
let newest = 0;

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
  byId("filter").addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      buttons()[0]?.focus();
    }
  });
  byId("boards-table").addEventListener("keydown", move);
  byId("boards-table").addEventListener("focusin", (event) => keepStop(event.target));
}

// The boards that are shown, from the top down.
function buttons() {
  return [...byId("boards-table").querySelectorAll("tr:not([hidden]) button")];
}

// One stop of the Tab key for the whole table: arrows go from board to board.
function keepStop(focused) {
  const shown = buttons();
  const stop = shown.find((one) => one === focused)
    || shown.find((one) => one.getAttribute("aria-pressed") === "true") || shown[0];
  byId("boards-table").querySelectorAll("button").forEach((one) => {
    one.tabIndex = one === stop ? 0 : -1;
  });
}

function move(event) {
  const shown = buttons();
  const at = shown.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1 }[event.key];
  if (at < 0 || to === undefined) {
    return;
  }
  event.preventDefault();
  shown[Math.max(0, Math.min(to, shown.length - 1))].focus();
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
  task.stop();
  newest += 1;
  const own = newest;
  await planHasCome();
  if (own !== newest) {
    return;
  }
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
  if (!byId("boards-table").firstElementChild) {
    fill(byId("boards-table"), element("table", { class: "fits" }, heads(), element("tbody")));
  }
  const body = byId("boards-table").querySelector("tbody");
  const known = new Map([...body.rows].map((line) => [line.dataset.row, line]));
  const lines = found.rows.map((one) => update(known.get(one.board) || row(one), one));
  // Rows that stay are not touched: somebody may hold the mouse over one, or the focus in it.
  const wanted = new Set(lines);
  [...body.rows].filter((line) => !wanted.has(line)).forEach((line) => line.remove());
  lines.forEach((line, at) => {
    if (body.rows[at] !== line) {
      body.insertBefore(line, body.rows[at] || null);
    }
  });
  filter();
  markChosen();
}

function heads() {
  const names = table.columns.map((column) =>
    element("th", { scope: "col", class: table.right.includes(column) ? "number" : "" }, column));
  return element("thead", {}, element("tr", {}, ...names));
}

function row(found) {
  const button = element("button", {
    type: "button", class: "link", "data-board": found.board, "aria-pressed": "false",
    onclick: () => choose(found.board),
  });
  return element("tr", { "data-row": found.board }, element("th", { scope: "row" }, button));
}

function update(line, found) {
  const [first, ...rest] = found.cells;
  const button = line.querySelector("button");
  if (!button.firstChild) {
    fill(button, found.title);
    button.after(element("span", { class: "soft small board" }, first));
  }
  const cells = rest.map((text, at) => {
    const name = table.columns[at + 1];
    if (at === rest.length - 1) {
      const mark = element("span", { class: `mark ${found.fits ? "good" : "bad"}`, "aria-hidden": "true" });
      return element("td", { class: "last", "data-title": name }, mark, text);
    }
    return element("td", { class: table.right.includes(name) ? "number" : "", "data-title": name }, text);
  });
  while (line.cells.length > 1) {
    line.deleteCell(1);
  }
  line.append(...cells);
  return line;
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
  keepStop(document.activeElement);
}

function filter() {
  const wanted = byId("filter").value.trim().toLowerCase();
  byId("boards-table").querySelectorAll("tbody tr").forEach((line) => {
    const words = `${line.cells[0].textContent} ${line.cells[1].textContent}`.toLowerCase();
    line.hidden = !words.includes(wanted);
  });
  keepStop(document.activeElement);
}
