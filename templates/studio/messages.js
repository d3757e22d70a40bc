// Shows what is wrong where the person looks, and says changes to those who do not see them.
import { byId, element, fill } from "./dom.js";

export function announce(text) {
  byId("announcer").textContent = text;
}

export function showError(place, error) {
  const lines = [["where", error.where], ["expected", error.legal], ["fix", error.fix]];
  const close = element("button", {
    type: "button", class: "close", "aria-label": "Close this message", onclick: () => fill(place),
  }, "×");
  fill(place, element("div", { class: "error", role: "alert" }, close,
    element("p", { class: "what" }, error.what),
    facts(lines),
    tried(error.tried),
    problems(error.problems)));
}

export function clear(place) {
  fill(place);
}

// What other options came to, where a limit is exceeded.
export function tried(lines) {
  if (!lines || lines.length === 0) {
    return null;
  }
  return element("div", { class: "tried" },
    element("p", {}, "Tried, and what came of it:"),
    element("ul", {}, ...lines.map((line) => element("li", {}, line))));
}

function facts(pairs) {
  const known = pairs.filter(([, text]) => text);
  if (known.length === 0) {
    return null;
  }
  return element("dl", {}, ...known.map(([name, text]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, ...withCode(text)))));
}

// Lines behind the first are code to copy, indented as a terminal shows them.
function withCode(text) {
  const [first, ...rest] = text.split("\n");
  if (rest.length === 0) {
    return [first];
  }
  const indents = rest.filter((line) => line.trim()).map((line) => line.search(/\S/));
  const least = Math.min(...indents);
  const code = rest.map((line) => line.slice(least)).join("\n");
  return [first, element("pre", { tabindex: "0", role: "region", "aria-label": "code" }, code)];
}

function problems(found) {
  if (!found || found.length === 0) {
    return null;
  }
  return element("ol", { class: "problems" }, ...found.map((problem) =>
    element("li", {}, element("p", {}, problem.what),
      facts([["where", problem.where], ["expected", problem.legal], ["fix", problem.fix]]))));
}
