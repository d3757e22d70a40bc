// What a plan is for: a board or a CPU, and a goal.
import { byId, element, fill } from "./dom.js";
import { change, onChange, plan } from "./state.js";

const BOARD = "board:";
const CPU = "cpu:";
let boards = [];

export function begin(start) {
  boards = start.boards;
  const option = (kind, name, text) => element("option", { value: kind + name }, text);
  const select = byId("target");
  fill(select,
    element("optgroup", { label: "CPUs" }, ...start.cpus.map((name) => option(CPU, name, name))),
    element("optgroup", { label: "Boards" },
      ...boards.map((board) => option(BOARD, board.name, `${board.title} (${board.name})`))));
  select.value = CPU + start.cpu;
  select.addEventListener("change", () => change(chosen(select.value)));
  byId("goals").append(...start.goals.map((goal) => radio(goal, goal === start.goal)));
  change({ target: start.cpu, optimize: start.goal });
  onChange(show);
}

// The types of projects that the chosen board has.
export function projectTypes() {
  const name = plan()?.board;
  return boards.find((board) => board.name === name)?.projects || [];
}

function chosen(value) {
  const isBoard = value.startsWith(BOARD);
  return {
    board: isBoard ? value.slice(BOARD.length) : null,
    target: isBoard ? null : value.slice(CPU.length),
    ram_budget: null,
  };
}

function radio(goal, isChosen) {
  const input = element("input", {
    type: "radio", name: "goal", value: goal, id: `goal-${goal}`, checked: isChosen,
    onchange: () => change({ optimize: goal }),
  });
  return element("label", { for: input.id }, input, element("span", {}, goal));
}

// Other parts of the page change what is looked at, too.
function show() {
  const now = plan();
  if (now === null) {
    return;
  }
  byId("target").value = now.board ? BOARD + now.board : CPU + now.target;
  byId(`goal-${now.optimize}`).checked = true;
}
