// One kind of work of which only the newest counts: a new one ends the one before it.
import { element, fill } from "./dom.js";
import { clear, showError } from "./messages.js";

const SOON = 100; // milliseconds until it is worth a word

export class Task {
  // progress: where it says what is being done; said: where errors go.
  constructor(progress, said) {
    this.progress = progress;
    this.said = said;
    this.controller = null;
  }

  // Runs work(signal, onEvent); true if it came to its end without an error.
  async run(work, onEvent) {
    this.stop();
    const controller = new AbortController();
    this.controller = controller;
    const shown = this.show();
    clear(this.said);
    let failed = false;
    const seen = (event) => {
      if (controller.signal.aborted) {
        return;
      }
      if (event.event === "progress") {
        shown.say(event.text);
      } else if (event.event === "error") {
        failed = true;
        showError(this.said, event);
      } else {
        onEvent(event);
      }
    };
    try {
      await work(controller.signal, seen);
    } catch (error) {
      if (error.name === "AbortError") {
        return false;
      }
      failed = true;
      showError(this.said, error.event ? error : { what: String(error) });
    } finally {
      shown.end();
    }
    return !failed && !controller.signal.aborted;
  }

  stop() {
    if (this.controller) {
      this.controller.abort();
    }
  }

  // Seconds are for eyes alone: a screen reader is told the words when they change.
  show() {
    const words = element("span", { role: "status" });
    const seconds = element("span", { class: "seconds", "aria-hidden": "true" });
    const stop = element("button", { type: "button", class: "link", onclick: () => this.stop() }, "Stop");
    const line = element("p", {}, element("span", { class: "spinner", "aria-hidden": "true" }), words, seconds, stop);
    const begun = performance.now();
    let said = "working";
    const soon = setTimeout(() => {
      words.textContent = said;
      fill(this.progress, line);
    }, SOON);
    const clock = setInterval(() => {
      seconds.textContent = `${((performance.now() - begun) / 1000).toFixed(0)} s`;
    }, 1000);
    return {
      say: (text) => {
        said = text;
        words.textContent = text;
      },
      end: () => {
        clearTimeout(soon);
        clearInterval(clock);
        line.remove();
      },
    };
  }
}
