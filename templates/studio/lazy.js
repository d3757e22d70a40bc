// A panel that is filled when one looks at it, and again when what it shows is another.
import { element, fill } from "./dom.js";
import { onChange, plan } from "./state.js";
import { isShown, onShow } from "./tabs.js";
import { Task } from "./task.js";

// key(plan) says what the content follows from; load(plan, signal, seen) asks for it, null if
// there is nothing to ask; show(event, place) shows it.
export function lazyPanel(panel, { key, load, show }) {
  const progress = element("div", { class: "progress" });
  const said = element("div");
  const place = element("div");
  fill(panel, progress, said, place);
  const task = new Task(progress, said);
  let loaded = null;

  async function refresh() {
    const asked = plan();
    const wanted = asked === null ? null : key(asked);
    if (!isShown(panel.id) || wanted === null || wanted === loaded) {
      return;
    }
    loaded = wanted;
    place.setAttribute("aria-busy", "true");
    const done = await task.run(
      (signal, seen) => load(asked, signal, seen), (event) => show(event, place));
    if (!done && loaded === wanted) {
      loaded = null;
    }
    place.setAttribute("aria-busy", "false");
  }

  onShow(panel.id, refresh);
  onChange(refresh);
  return { refresh, place };
}
