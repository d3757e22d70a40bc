// Opens a model: one that is there, or a file that is chosen or dropped.
import { ask, drop } from "./api.js";
import { byId, element, fill } from "./dom.js";
import { announce, showError } from "./messages.js";
import { change, plan } from "./state.js";
import { Task } from "./task.js";

const task = new Task(byId("model-progress"), byId("model-said"));
const labels = new Map();
let most = 0;

export function labelOf(number) {
  return labels.get(number) || "";
}

// before: what was looked at in this tab, which goes before the first model.
export function begin(models, first, mostBytes, before) {
  most = mostBytes;
  models.forEach((model) => labels.set(model.number, model.label));
  list(first);
  const select = byId("models");
  select.addEventListener("change", () => {
    if (select.value !== "") {
      open(Number(select.value));
    }
  });
  byId("file").addEventListener("change", (event) => {
    take(event.target.files[0]);
    event.target.value = "";
  });
  byId("example").addEventListener("click", () => open(models[models.length - 1].number));
  catchDrops();
  if (before !== null && labels.has(before.model)) {
    show(before);
  } else if (first !== null) {
    open(first);
  }
}

// Shows a plan that was looked at before, of this model or another.
export function show(asked) {
  if (plan()?.model === asked.model) {
    task.stop();
    change(asked);
  } else {
    open(asked.model, asked);
  }
}

function list(chosen) {
  const none = element("option", { value: "" }, "nothing yet");
  const options = [...labels].map(([number, label]) =>
    element("option", { value: number, selected: number === chosen }, label));
  fill(byId("models"), ...(chosen === null ? [none, ...options] : options));
}

async function open(number, asked = { ram_budget: null }) {
  const work = (signal, seen) => ask("inspect", { model: number }, signal, seen);
  if (await task.run(work, (event) => showFacts(event.facts))) {
    opened(number, asked);
  }
}

async function take(file) {
  if (!file) {
    return;
  }
  if (file.size > most) {
    showError(byId("model-said"), {
      what: `${file.name} has ${file.size.toLocaleString("en")} bytes`,
      legal: `at most ${most.toLocaleString("en")} bytes`,
      fix: "a larger one is compiled by `microtir` in a terminal",
    });
    return;
  }
  let number = null;
  const work = (signal, seen) => drop(file, signal, seen);
  const done = await task.run(work, (event) => {
    if (event.event === "dropped") {
      number = event.number;
      labels.set(number, event.label);
    } else {
      showFacts(event.facts);
    }
  });
  if (done && number !== null) {
    opened(number, { ram_budget: null });
  }
}

function opened(number, asked) {
  list(number);
  announce(`${labelOf(number)} is open`);
  document.title = `${labelOf(number)}: microtir studio`;
  change({ ...asked, model: number });
}

function showFacts(facts) {
  fill(byId("facts"), ...facts.map((fact) => element("li", {}, fact)));
}

// A file may be dropped anywhere: a browser would leave the page and show it.
function catchDrops() {
  const zone = byId("drop");
  let inside = 0;
  const light = (isOver) => zone.classList.toggle("over", isOver);
  document.addEventListener("dragenter", (event) => { event.preventDefault(); inside += 1; light(true); });
  document.addEventListener("dragleave", () => { inside -= 1; light(inside > 0); });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    inside = 0;
    light(false);
    take(event.dataTransfer.files[0]);
  });
}
