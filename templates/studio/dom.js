// Makes and fills elements. Text is set as text; the one place for markup is `insertReport`.

export function byId(id) {
  return document.getElementById(id);
}

// element("p", {class: "soft", onclick: f}, "text", child)
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) {
      made.addEventListener(name.slice(2), value);
    } else if (value === true) {
      made.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      made.setAttribute(name, value);
    }
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function fill(place, ...children) {
  place.replaceChildren(...children);
}

// What the server's templates made of a report: every value in it was escaped there, and the
// page's policy runs no script that it could hold.
const policy = window.trustedTypes
  ? window.trustedTypes.createPolicy("microtir", { createHTML: (html) => html })
  : { createHTML: (html) => html };

export function insertReport(place, html) {
  const parsed = new DOMParser().parseFromString(policy.createHTML(html), "text/html");
  place.replaceChildren(...parsed.body.childNodes);
  place.querySelectorAll(".scroll").forEach((box) => {
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "scrolls sideways");
  });
  window.enliven(place);
}
