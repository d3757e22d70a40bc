// Lets the parts of a report below `root` answer: tips at boxes and rows, tables that sort.
// The page has an element #tip, in which what is pointed at is explained.
function enliven(root) {
  "use strict";
  var tip = document.getElementById("tip");

  function show(element, x, y) {
    tip.textContent = element.dataset.tip;
    tip.hidden = false;
    var width = tip.offsetWidth, height = tip.offsetHeight;
    tip.style.left = Math.max(8, Math.min(x + 14, window.innerWidth - width - 8)) + "px";
    tip.style.top = (y + height + 24 > window.innerHeight ? y - height - 10 : y + 16) + "px";
  }

  function mark(name, isOn) {
    root.querySelectorAll("g.box").forEach(function (box) {
      box.classList.toggle("same", isOn && box.dataset.buffer === name);
    });
    root.querySelectorAll("table.buffers tbody tr, table.culprits tr").forEach(function (row) {
      row.classList.toggle("same", isOn && row.cells[0].textContent === name);
    });
  }

  function value(row, column) {
    var text = row.cells[column].textContent, digits = text.replace(/,/g, "");
    return /^\d+/.test(digits) ? parseInt(digits, 10) : text;
  }

  // Numbers begin with the largest, words with the first; a second click turns the order round.
  function sort(head) {
    var table = head.closest("table"), column = head.cellIndex;
    var isNumber = head.classList.contains("number");
    var before = head.getAttribute("aria-sort") || (isNumber ? "ascending" : "descending");
    var sign = before === "ascending" ? -1 : 1;
    var rows = Array.prototype.slice.call(table.tBodies[0].rows);
    rows.sort(function (a, b) {
      var x = value(a, column), y = value(b, column);
      if (typeof x !== typeof y) { return typeof x === "number" ? -1 : 1; }
      return x === y ? 0 : (x < y ? -sign : sign);
    });
    rows.forEach(function (row) { table.tBodies[0].appendChild(row); });
    head.parentNode.querySelectorAll("th").forEach(function (th) { th.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
  }

  root.querySelectorAll("table thead th").forEach(function (head) {
    head.closest("table").classList.add("sortable");
    head.tabIndex = 0;
    head.addEventListener("click", function () { sort(head); });
    head.addEventListener("keydown", function (event) { if (event.key === "Enter") { sort(head); } });
  });

  root.querySelectorAll(".tip").forEach(function (element) {
    // The browser's own tooltip is for readers without this script: two would cover each other.
    var title = element.querySelector("title");
    element.dataset.tip = title ? title.textContent : element.title;
    element.setAttribute("aria-label", element.dataset.tip);
    if (title) { title.remove(); } else { element.removeAttribute("title"); }
    var name = element.dataset.buffer;
    element.addEventListener("pointermove", function (event) {
      show(element, event.clientX, event.clientY);
    });
    element.addEventListener("focus", function () {
      var box = element.getBoundingClientRect();
      show(element, box.left, box.bottom - 12);
      if (name) { mark(name, true); }
    });
    element.addEventListener("pointerenter", function () { if (name) { mark(name, true); } });
    ["pointerleave", "blur"].forEach(function (kind) {
      element.addEventListener(kind, function () {
        tip.hidden = true;
        mark("", false);
      });
    });
  });
}
