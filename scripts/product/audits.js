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
