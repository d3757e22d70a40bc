// Opens a model: one that is there, or a file that is chosen or dropped.
import { ask, drop } from "./api.js";
import { byId, element, fill } from "./dom.js";
import { announce, clear, showError } from "./messages.js";
import { change, plan } from "./state.js";
import { Task } from "./task.js";

const task = new Task(byId("model-progress"), byId("model-said"));
const labels = new Map();
const origins = new Map();
const SAMPLES = /\.np[yz]$/i;
let most = 0;
let takeSamples = null;
let showCost = null;

export function labelOf(number) {
  return labels.get(number) || "";
}

// The float model that integers were made of, as long as it is there; else the model itself.
export function originOf(number) {
  const origin = origins.get(number) ?? null;
  return labels.has(origin) ? origin : number;
}

export function isMade(number) {
  return (origins.get(number) ?? null) !== null;
}

// Knows a model that the server tells of.
export function adopt(model) {
  labels.set(model.number, model.label);
  origins.set(model.number, model.origin);
}

// Lets somebody else take samples and show what integers cost.
export function onSamples(take, show) {
  takeSamples = take;
  showCost = show;
}

// before: what was looked at in this tab, which goes before the first model.
export function begin(models, first, mostBytes, before) {
  most = mostBytes;
  models.forEach(adopt);
  list(first);
  const select = byId("models");
  select.addEventListener("change", () => {
    if (select.value !== "") {
      open(Number(select.value));
    }
  });
  byId("file").addEventListener("change", (event) => {
    takeAll([...event.target.files]);
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
    clear(byId("model-said"));
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

export async function open(number, asked = { ram_budget: null }) {
  byId("empty").hidden = true;
  const work = (signal, seen) => ask("inspect", { model: number }, signal, seen);
  if (await task.run(work, showFacts)) {
    opened(number, asked);
  } else {
    byId("empty").hidden = plan() !== null;
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
  if (SAMPLES.test(file.name)) {
    takeSamples(file);
    return;
  }
  let number = null;
  const work = (signal, seen) => drop(file, signal, seen);
  const done = await task.run(work, (event) => {
    if (event.event === "dropped") {
      number = event.number;
      adopt(event);
    } else {
      showFacts(event);
    }
  });
  if (done && number !== null) {
    opened(number, { ram_budget: null });
  }
}

// A model and its samples may be dropped as one: samples wait for their model.
async function takeAll(files) {
  const isSamples = (file) => SAMPLES.test(file.name);
  await take(files.find((file) => !isSamples(file)));
  await take(files.find(isSamples));
}

function opened(number, asked) {
  clear(byId("model-said"));
  list(number);
  announce(`${labelOf(number)} is open`);
  document.title = `${labelOf(number)}: microtir studio`;
  change({ ...asked, model: number });
}

function showFacts(model) {
  fill(byId("facts"), ...model.facts.map((fact) => element("li", {}, fact)));
  showCost(model.cost);
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
    takeAll([...event.dataTransfer.files]);
  });
}
