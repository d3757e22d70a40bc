(function () {
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
    document.querySelectorAll("g.box").forEach(function (box) {
      box.classList.toggle("same", isOn && box.dataset.buffer === name);
    });
    document.querySelectorAll("table.buffers tbody tr").forEach(function (row) {
      row.classList.toggle("same", isOn && row.cells[0].textContent === name);
    });
  }

  document.querySelectorAll(".tip").forEach(function (element) {
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
})();
