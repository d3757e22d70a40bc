// The slider of the RAM budget: from less than any plan takes to no budget at all.
import { byId } from "./dom.js";
import { change, onChange, plan } from "./state.js";

const FREE = 100; // the right end
const BELOW = 0.75; // of the smallest plan: what does not fit is to be seen, too
const WAIT = 180; // milliseconds without a move until it is planned anew
const known = new Map(); // ranges of the model, by what it is compiled for
let range = null;
let timer = 0;

export function begin() {
  const slider = byId("budget");
  slider.addEventListener("input", () => {
    say(bytes());
    clearTimeout(timer);
    timer = setTimeout(() => change({ ram_budget: bytes() }), WAIT);
  });
  byId("least").addEventListener("click", () => change({ ram_budget: range.least }));
  byId("free").addEventListener("click", () => change({ ram_budget: null }));
  onChange((changed) => {
    if (changed.includes("model")) {
      known.clear();
    }
    if (changed.some((name) => name === "model" || name === "board" || name === "target")) {
      setRange(known.get(target()) ?? null);
    }
    show();
  });
}

// The smallest workspace; null while it is not known, and has to be asked for.
export function leastWorkspace() {
  return range === null ? null : range.workspace;
}

// Takes the range of what is looked at, as a plan of it told; null while none has.
export function setRange(found) {
  range = found;
  if (found !== null) {
    known.set(target(), found);
  }
  ["budget", "least", "free"].forEach((id) => { byId(id).disabled = found === null; });
  byId("least").textContent = found === null ? "least" : `least: ${found.least.toLocaleString("en")}`;
  show();
}

function target() {
  const now = plan();
  return now?.board ? `board ${now.board}` : `CPU ${now?.target}`;
}

function low() {
  return Math.floor(range.least * BELOW);
}

// The bytes where the slider stands; null at its end.
function bytes() {
  const place = Number(byId("budget").value);
  return place === FREE ? null : Math.round(low() + ((range.most - low()) * place) / (FREE - 1));
}

function show() {
  const budget = plan()?.ram_budget ?? null;
  clearTimeout(timer);
  say(budget);
  if (range !== null) {
    const place = budget === null ? FREE : ((budget - low()) * (FREE - 1)) / (range.most - low());
    byId("budget").value = Math.min(Math.max(Math.round(place), 0), FREE);
  }
}

function say(budget) {
  const text = budget === null ? "no budget" : `${budget.toLocaleString("en")} bytes`;
  byId("budget-text").textContent = text;
  byId("budget").setAttribute("aria-valuetext", text);
}
