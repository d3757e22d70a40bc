// Asks the server, with the token that came with the address.

const KEPT = "microtir-token";

// The token leaves the address bar at once, and is this tab's alone.
function takeToken() {
  const given = location.hash.slice(1);
  if (given.length > 20) {
    sessionStorage.setItem(KEPT, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEPT) || "";
}

const token = takeToken();

export async function start() {
  const response = await fetch("/api/start", { headers: { "x-microtir-token": token } });
  if (!response.ok) {
    throw new Error(await response.text());
  }
  return response.json();
}

// Asks, and hands on each event as it comes. Ends with the last; an abort is an AbortError.
export function ask(name, body, signal, onEvent) {
  return send(`/api/${name}`, JSON.stringify(body), {}, signal, onEvent);
}

export function drop(file, signal, onEvent) {
  return upload("/api/models", file, signal, onEvent);
}

export function dropSamples(file, signal, onEvent) {
  return upload("/api/samples", file, signal, onEvent);
}

function upload(address, file, signal, onEvent) {
  const headers = { "x-model-name": encodeURIComponent(file.name) };
  return send(address, file, headers, signal, onEvent);
}

async function send(address, body, headers, signal, onEvent) {
  let response;
  try {
    response = await fetch(address, {
      method: "POST", body, signal, headers: { ...headers, "x-microtir-token": token },
    });
  } catch (error) {
    throw error.name === "AbortError" ? error : gone();
  }
  if (response.status !== 200 && response.status !== 400) {
    throw { event: "error", what: await response.text(), fix: null };
  }
  await read(response, onEvent);
}

async function read(response, onEvent) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      throw error.name === "AbortError" ? error : gone();
    });
    rest += value || "";
    const lines = rest.split("\n");
    rest = done ? "" : lines.pop();
    lines.filter(Boolean).forEach((line) => onEvent(JSON.parse(line)));
    if (done) {
      return;
    }
  }
}

function gone() {
  return {
    event: "error",
    what: "the server does not answer",
    fix: "look at the terminal in which `microtir studio` runs, and start it again",
  };
}
