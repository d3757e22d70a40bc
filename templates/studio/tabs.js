// Tabs by the pattern of ARIA: one stop of the Tab key, arrows go from one to the next.
import { element } from "./dom.js";

const shown = new Map();
let selected = null;
let list = null;

// onShow is called when a panel comes to the front.
export function onShow(id, listener) {
  shown.set(id, listener);
}

export function isShown(id) {
  return selected === id;
}

export function makeTabs(place) {
  list = place;
  const panels = [...list.parentNode.querySelectorAll(":scope > [role=tabpanel]")];
  panels.forEach((panel) => {
    const tab = element("button", {
      type: "button", role: "tab", id: `tab-${panel.id}`, "aria-controls": panel.id,
      onclick: () => select(panel.id),
    }, panel.dataset.title);
    panel.setAttribute("aria-labelledby", tab.id);
    list.append(tab);
  });
  list.addEventListener("keydown", move);
  select(panels[0].id);
}

// Shows a tab, or hides it where its panel has nothing to show.
export function showTab(id, isThere) {
  document.getElementById(`tab-${id}`).hidden = !isThere;
  if (!isThere && selected === id) {
    select(list.children[0].getAttribute("aria-controls"));
  }
}

export function select(id) {
  selected = id;
  for (const tab of list.children) {
    const panel = document.getElementById(tab.getAttribute("aria-controls"));
    const isOn = panel.id === id;
    tab.setAttribute("aria-selected", isOn);
    tab.tabIndex = isOn ? 0 : -1;
    panel.hidden = !isOn;
  }
  if (shown.has(id)) {
    shown.get(id)();
  }
}

function move(event) {
  const tabs = [...list.children].filter((tab) => !tab.hidden);
  const at = tabs.indexOf(document.activeElement);
  const to = {
    ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1,
  }[event.key];
  if (at < 0 || to === undefined) {
    return;
  }
  event.preventDefault();
  const tab = tabs[(to + tabs.length) % tabs.length];
  select(tab.getAttribute("aria-controls"));
  tab.focus();
}
