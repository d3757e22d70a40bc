// What pages of the site do beside showing text: tables sort and are reduced to a board, and memory
// maps answer. Without this script they are plain tables and pictures.
(function () {
  "use strict";

  // A figure by its value, "0.4 KB short" and the like after all figures, then words.
  function rank(cell) {
    const text = cell.textContent.trim();
    const number = Number(text.replace(/,/g, ""));
    return text && !Number.isNaN(number) ? [0, number] : [1, text];
  }

  function compare(a, b) {
    return a[0] - b[0] || (a[0] ? a[1].localeCompare(b[1]) : a[1] - b[1]);
  }

  // The first click sorts upwards, the next one turns figures round; words stay below figures.
  function sort(head) {
    const isUp = head.getAttribute("aria-sort") !== "ascending";
    const body = head.closest("table").tBodies[0];
    const rows = [...body.rows].map((row) => [rank(row.cells[head.cellIndex]), row]);
    rows.sort(([a], [b]) => (isUp || a[0] !== b[0] ? compare(a, b) : compare(b, a)));
    body.append(...rows.map(([, row]) => row));
    head.parentNode.querySelectorAll("th").forEach((th) => th.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
  }

  function makeSortable(table) {
    table.querySelectorAll("thead th").forEach((head) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(head));
      head.append(button);
    });
  }

  // The tables that have a column for each board, and the names of these.
  const tables = [...document.querySelectorAll(".sorts table")];
  const byBoard = tables.filter((table) => table.rows[0].querySelector("th:nth-child(3) code"));

  function show(names, board) {
    byBoard.forEach((table) => [...table.rows].forEach((row) => {
      [...row.cells].forEach((cell, column) => {
        cell.hidden = column > 1 && board !== "" && names[column] !== board;
      });
    }));
  }

  function addChoice() {
    const names = [...byBoard[0].rows[0].cells].map((cell) => cell.textContent.trim());
    const label = document.createElement("label");
    const select = document.createElement("select");
    label.className = "choice";
    select.append(new Option("all boards", ""), ...names.slice(2).map((name) => new Option(name)));
    select.addEventListener("change", () => show(names, select.value));
    label.append("Board", select);
    byBoard[0].closest(".sorts").before(label);
  }

  // The search takes signs at words as operators: "--flash-budget" would look for what has no such
  // word, and the colon of a message for a field. It reads words alone. Those of a message are
  // looked for in texts, without numbers and small words, since a word of a title counts far more.
  // A message is long, or has a value; the page of messages has a tag, and comes first.
  const SMALL = /^(\d+|a|an|and|are|as|at|by|for|has|in|is|it|no|not|of|on|or|the|to|too|with)$/i;

  function readable(typed) {
    const words = typed.replace(/(^|\s)[^\w\s]+|[^\w\s]+(?=\s|$)|[:^~*"]/g, "$1").split(/\s+/);
    const large = words.filter((word) => word && !SMALL.test(word));
    const isMessage = words.length > 6 || (words.length > 3 && /['"`=\d]/.test(typed));
    return isMessage ? ["tags:message", ...large.map((word) => `text:${word}`)].join(" ") : words.join(" ");
  }

  function searchWords() {
    const input = document.querySelector(".md-search__input");
    const own = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
    Object.defineProperty(input, "value", {
      get: () => readable(own.get.call(input)),
      set: (text) => own.set.call(input, text),
    });
  }

  // What the theme leaves out: a name of the dialog, names that differ, and a way to scroll by keys.
  function complete() {
    document.querySelector(".md-search").setAttribute("aria-label", "Search");
    document.querySelectorAll(".md-code__nav").forEach((nav, at) => {
      nav.setAttribute("aria-label", `Listing ${at + 1}`);
    });
    const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => {
      target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
    }));
    document.querySelectorAll(".md-typeset__scrollwrap, pre > code, .live")
      .forEach((box) => sizes.observe(box));
  }

  searchWords();
  window.addEventListener("load", complete);
  if (byBoard.length) { addChoice(); }
  tables.forEach(makeSortable);
  document.querySelectorAll(".live").forEach(enliven);
}());
