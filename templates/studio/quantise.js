// Makes a float model one of integers by samples: a second file, which is dropped or chosen.
import { ask, dropSamples } from "./api.js";
import { byId, insertReport } from "./dom.js";
import { adopt, labelOf, open, originOf } from "./model.js";
import { announce } from "./messages.js";
import { onChange, plan } from "./state.js";
import { select, showTab } from "./tabs.js";
import { Task } from "./task.js";

const task = new Task(byId("quantise-progress"), byId("quantise-said"));
let samples = null;

// known: the samples that were dropped last, before the page was loaded again.
export function begin(known) {
  if (known !== null) {
    keep(known);
  }
  byId("quantise").addEventListener("click", quantise);
  onChange(refresh);
  showCost(null);
}

// Takes a file of samples; a model that is open is quantised by it at once.
export async function takeSamples(file) {
  const work = (signal, seen) => dropSamples(file, signal, seen);
  const done = await task.run(work, keep);
  refresh();
  if (done && plan() !== null) {
    await quantise();
  }
}

// What integers cost, as the server's template has it; null of a model that was not made here.
export function showCost(html) {
  showTab("cost", html !== null);
  insertReport(byId("cost"), html || "");
}

function keep(known) {
  samples = known.number;
  byId("samples").textContent = `Samples: ${known.label}`;
}

function refresh() {
  byId("quantise").disabled = samples === null || plan() === null;
}

// Of integers that were made here the float model that they were made of is meant.
async function quantise() {
  const floats = originOf(plan().model);
  const body = { model: floats, samples, width: byId("width").value };
  let made = null;
  const work = (signal, seen) => ask("quantise", body, signal, seen);
  const done = await task.run(work, (event) => {
    if (event.event === "dropped") {
      made = event;
    }
  });
  if (done && made !== null) {
    adopt(made);
    announce(`${labelOf(made.number)} was made`);
    await open(made.number);
    select("cost");
  }
}
