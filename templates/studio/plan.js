// Plans what is looked at, and shows it as the report does: figures, memory map, layers.
import { ask } from "./api.js";
import { leastWorkspace, setRange } from "./budget.js";
import { byId, element, fill, insertReport } from "./dom.js";
import { announce, tried } from "./messages.js";
import { onChange, plan } from "./state.js";
import { Task } from "./task.js";

const task = new Task(byId("plan-progress"), byId("plan-said"));
let title = "";
let coming = Promise.resolve();

export function begin() {
  onChange(look);
  byId("copy").addEventListener("click", copy);
  window.addEventListener("resize", snuggle);
}

// What the plan that is shown is called.
export function titleOfPlan() {
  return title;
}

// Waits until what is looked at is shown, or cannot be: what nobody looks at gives way to it.
export async function planHasCome() {
  let awaited;
  do {
    awaited = coming;
    await awaited;
  } while (awaited !== coming);
}

async function look() {
  const asked = plan();
  if (asked === null) {
    return;
  }
  byId("empty").hidden = true;
  byId("views").setAttribute("aria-busy", "true");
  let come;
  coming = new Promise((resolve) => { come = resolve; });
  const work = (signal, seen) => ask("plan", { plan: asked, least: leastWorkspace() }, signal, seen);
  const done = await task.run(work, (event) => {
    ({ plan: show, range: setRange, tried: showTried })[event.event](event);
    come();
  });
  come();
  if (!done && byId("plan-said").querySelector(".error")) {
    byId("views").hidden = true;
    byId("verdict").hidden = true;
    byId("command-line").hidden = true;
  }
}

function show(found) {
  title = found.title;
  insertReport(byId("headline"), found.parts.headline);
  byId("headline").querySelector("ul").prepend(...found.figures.map(([figure, words]) =>
    element("li", {}, element("b", {}, figure), words)));
  byId("ram-note").textContent = found.ram_note;
  insertReport(byId("memory"), found.parts.maps + found.parts.summary);
  insertReport(byId("layers"), found.parts.layers);
  byId("views").hidden = false;
  snuggle();
  byId("views").setAttribute("aria-busy", "false");
  byId("command").textContent = found.command;
  byId("command-line").hidden = false;
  byId("keep").disabled = false;
  showVerdict(found);
}

// A map that is a little too wide is made smaller; one of many layers scrolls.
const LEGIBLE = 0.75;

function snuggle() {
  byId("memory").querySelectorAll("svg.map").forEach((map) => {
    const room = byId("views").clientWidth / Number(map.getAttribute("width"));
    map.classList.toggle("snug", room < 1 && room >= LEGIBLE);
  });
}

function showVerdict(found) {
  const verdict = byId("verdict");
  verdict.hidden = !found.has_limits;
  verdict.textContent = found.fits ? "fits" : "does not fit";
  verdict.className = `verdict ${found.fits ? "good" : "bad"}`;
  fill(byId("plan-said"), ...found.exceeded.map((text) =>
    element("p", { class: "exceeded-limit" }, text)));
  announce(`${found.figures.map((one) => one.join(" ")).join(", ")}${found.has_limits ? `, ${verdict.textContent}` : ""}`);
}

function showTried(found) {
  const lines = tried(found.lines);
  if (lines !== null) {
    byId("plan-said").append(lines);
  }
}

async function copy() {
  await navigator.clipboard.writeText(byId("command").textContent);
  byId("copy").textContent = "Copied";
  setTimeout(() => { byId("copy").textContent = "Copy"; }, 1500);
}
