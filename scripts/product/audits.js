// What browser.py asks of a page: contrast, width, and whether one sees where the focus is.

function numbers(colour) {
  return (colour.match(/[\d.]+/g) || []).map(Number);
}

// The relative luminance of WCAG 2.
function luminance(rgb) {
  const linear = rgb.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

function ground(element) {
  for (let at = element; at; at = at.parentElement) {
    const [r, g, b, a = 1] = numbers(getComputedStyle(at).backgroundColor);
    if (a === 1) {
      return [r, g, b];
    }
  }
  return [255, 255, 255];
}

// Texts that are shown with less contrast than the level AA asks for.
function faint() {
  const found = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.data.trim();
    const element = texts.currentNode.parentElement;
    const isShown = element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    if (!text || !isShown || element.closest("svg, :disabled, [aria-busy=true]")) {
      continue;
    }
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    const [one, other] = [luminance(numbers(style.color)), luminance(ground(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < least) {
      found.add(`${text}: ${contrast.toFixed(2)}, ${style.color} on ${ground(element)}`);
    }
  }
  return [...found];
}

// What reaches beyond the window and is in nothing that scrolls by itself.
function cut() {
  const found = [];
  document.querySelectorAll("body *").forEach((element) => {
    const box = element.getBoundingClientRect();
    const isShown = element.checkVisibility() && box.width > 1 && box.height > 1;
    const isOutside = box.right > innerWidth + 1 || box.left < -1;
    if (isShown && isOutside && !element.closest(".scroll, pre, svg, .skip")) {
      found.push(`${element.tagName}#${element.id}.${element.className}`);
    }
  });
  if (document.documentElement.scrollWidth > innerWidth) {
    found.push("the page scrolls sideways");
  }
  return found;
}

// A label may show the focus of the input that it stands for; boxes of a drawing are stroked.
function outlined(element) {
  return [element, element.nextElementSibling].filter(Boolean).some((one) => {
    const style = getComputedStyle(one);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  }) || element.matches("svg *");
}

// What has no name for a reader of screens, what scrolls and takes no keys, headings that leave out a
// level, and whether there is one main part.
function unnamed() {
  const found = [];
  const name = (one) => one.getAttribute("aria-label") || one.title || one.textContent.trim()
    || one.querySelector("img[alt]:not([alt=''])") || (one.labels && one.labels.length);
  document.querySelectorAll("a[href], button, select, [role=dialog], nav, input:not(.md-toggle)").forEach((one) => {
    if (one.checkVisibility() && !name(one)) { found.push(`no name: ${one.outerHTML.slice(0, 90)}`); }
  });
  document.querySelectorAll("img:not([alt])").forEach((one) => found.push(`no alt: ${one.src}`));
  document.querySelectorAll("main *").forEach((one) => {
    const isScrolled = one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === "auto";
    if (isScrolled && one.tabIndex < 0 && !one.querySelector("a, button, [tabindex]")) {
      found.push(`scrolls and takes no keys: ${one.outerHTML.slice(0, 90)}`);
    }
  });
  const levels = [...document.querySelectorAll("main h1, main h2, main h3, main h4")].map((h) => Number(h.tagName[1]));
  if (levels.filter((level) => level === 1).length !== 1 || levels.some((level, n) => n && level > levels[n - 1] + 1)) {
    found.push(`headings: ${levels}`);
  }
  if (document.querySelectorAll("main").length !== 1) { found.push("not one main part"); }
  return found;
}
