// What is looked at: a model, what it is compiled for, a goal and a budget. Views listen to it.

const listeners = [];
const current = { model: null, board: null, target: null, optimize: "balanced", ram_budget: null };

// change({optimize: "ram"}): listeners get the names of what is different now.
export function change(values) {
  const changed = Object.keys(values).filter((name) => current[name] !== values[name]);
  Object.assign(current, values);
  if (changed.length > 0) {
    listeners.forEach((listener) => listener(changed));
  }
}

export function onChange(listener) {
  listeners.push(listener);
}

// The plan as the server is asked for it; null while there is no model.
export function plan() {
  return current.model === null ? null : { ...current };
}

export function hasModel() {
  return current.model !== null;
}
