// Takes what was made of the plan: C, an archive, a project, a package, the report.
import { ask } from "./api.js";
import { projectTypes } from "./controls.js";
import { byId, element, fill } from "./dom.js";
import { announce } from "./messages.js";
import { isMade } from "./model.js";
import { onChange, plan } from "./state.js";
import { onShow } from "./tabs.js";
import { Task } from "./task.js";

const KINDS = [
  ["sources", "C sources", "A zip with the header, the code, the weights and metadata.json."],
  ["mlf", "Archive", "Model Library Format: the same with the runtime, for tools of microTVM."],
  ["report", "Report", "One HTML page with this memory map and all layers."],
];
const INTEGERS = [
  ["tflite", "TFLite file", "The integers that were made here, for tflite-micro and for `microtir`."],
  ["onnx", "ONNX file", "The same as QDQ: QuantizeLinear and DequantizeLinear around floats."],
];
let task = null;
let packages = [];

export function begin(formats) {
  packages = formats;
  const progress = element("div", { class: "progress" });
  const said = element("div");
  const choices = element("div", { class: "choices" });
  fill(byId("download"), choices, progress, said);
  task = new Task(progress, said);
  const refresh = () => fill(choices, ...kinds().map(card), project(), packageCard());
  onShow("download", refresh);
  onChange((changed) => {
    if (changed.includes("board") || changed.includes("model")) {
      refresh();
    }
  });
  refresh();
}

// Of integers that were made here the files, too.
function kinds() {
  const asked = plan();
  return asked !== null && isMade(asked.model) ? [...KINDS, ...INTEGERS] : KINDS;
}

function card([kind, title, text]) {
  return element("div", { class: "choice" }, element("h3", {}, title), element("p", {}, text),
    element("button", { type: "button", class: "button", "data-kind": kind, onclick: () => take(kind, null) },
      `Download ${title}`));
}

function project() {
  const types = projectTypes();
  const text = "A zip that builds with the board's own tools and needs no Python.";
  if (types.length === 0) {
    return element("div", { class: "choice" }, element("h3", {}, "Project"),
      element("p", {}, text), element("p", { class: "soft" }, "Choose a board for one."));
  }
  const select = element("select", { id: "project-type" },
    ...types.map((type) => element("option", { value: type }, type)));
  return element("div", { class: "choice" }, element("h3", {}, `Project for ${plan().board}`),
    element("p", {}, text),
    element("p", { class: "field" }, element("label", { for: "project-type" }, "Type"), select),
    element("button", { type: "button", class: "button", "data-kind": "project", onclick: () => take("project", select.value) },
      "Download Project"));
}

function packageCard() {
  const select = element("select", { id: "package-format" },
    ...packages.map((one) => element("option", { value: one.name }, `${one.name}: ${one.title}`)));
  return element("div", { class: "choice" }, element("h3", {}, "Package"),
    element("p", {}, "A zip of a library that another tool installs; its README says how."),
    element("p", { class: "field" }, element("label", { for: "package-format" }, "Format"), select),
    element("button", { type: "button", class: "button", "data-kind": "package",
      onclick: () => take("package", null, select.value) }, "Download Package"));
}

async function take(kind, type, format = null) {
  const body = { plan: plan(), kind, project_type: type, package_format: format };
  await task.run((signal, seen) => ask("download", body, signal, seen), save);
}

function save(file) {
  const bytes = Uint8Array.from(atob(file.content), (letter) => letter.charCodeAt(0));
  const address = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const link = element("a", { href: address, download: file.name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
  announce(`${file.name} was made`);
}
