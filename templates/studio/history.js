// Keeps what is looked at in the history of the tab: a reload shows it again, and Back leads to the
// model or the board before.
import { show } from "./model.js";
import { onChange, plan } from "./state.js";

const PLACES = ["model", "board", "target"];

export function begin() {
  onChange(keep);
  window.addEventListener("popstate", (event) => {
    if (event.state === null) {
      keep([]); // a link within the page has made an entry
    } else {
      show(event.state);
    }
  });
}

// What was looked at before the page was loaded again; null if nothing was.
export function before() {
  return history.state;
}

function keep(changed) {
  const now = plan();
  if (now === null || JSON.stringify(now) === JSON.stringify(history.state)) {
    return;
  }
  // Each move of the slider as an entry would bury what was before.
  if (history.state !== null && changed.some((name) => PLACES.includes(name))) {
    history.pushState(now, "");
  } else {
    history.replaceState(now, "");
  }
}
