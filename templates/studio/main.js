// Begins: asks the server what there is, and lets each part of the page know.
import { start } from "./api.js";
import * as boards from "./boards.js";
import * as budget from "./budget.js";
import * as code from "./code.js";
import * as compare from "./compare.js";
import * as controls from "./controls.js";
import { byId } from "./dom.js";
import * as download from "./download.js";
import * as history from "./history.js";
import { showError } from "./messages.js";
import * as model from "./model.js";
import * as plan from "./plan.js";
import * as quantise from "./quantise.js";
import { makeTabs } from "./tabs.js";
import * as trades from "./trades.js";

async function begin() {
  let found;
  try {
    found = await start();
  } catch (error) {
    byId("starting").hidden = true;
    byId("shut").hidden = false;
    showError(byId("shut"), {
      what: error.message,
      fix: "open the address that the terminal shows, with all that stands behind the #",
    });
    return;
  }
  byId("version").textContent = `version ${found.version}, on this machine alone`;
  controls.begin(found);
  budget.begin();
  plan.begin();
  boards.begin();
  makeTabs(document.querySelector("[role=tablist]"));
  [code, trades, compare].forEach((part) => part.begin());
  download.begin(found.packages);
  quantise.begin(found.samples);
  model.onSamples(quantise.takeSamples, quantise.showCost);
  history.begin();
  byId("starting").hidden = true;
  byId("main").hidden = false;
  model.begin(found.models, found.first, found.most_bytes, history.before());
}

begin();
