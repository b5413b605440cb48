"use strict";
// Tables that are sorted by their headings and filtered by a field, buttons that copy, and pictures in their own size.
// Without this script the page shows the same content.
(() => {
  const element = (name, properties, parent) => {
    const made = Object.assign(document.createElement(name), properties);
    if (parent) parent.append(made);
    return made;
  };
  const plain = (text) => text.replace(/[\s\u202f]+/g, " ").trim().toLowerCase();
  const byText = new Intl.Collator("en", { numeric: true }).compare;

  // Rows without a number stand last, in either direction.
  const compare = (one, other, direction) => {
    if (one.key === null || other.key === null) {
      if (one.key === null && other.key === null) return direction * byText(one.text, other.text);
      return one.key === null ? 1 : -1;
    }
    return direction * (one.key - other.key);
  };

  const sort = (table, headings, column) => {
    const heading = headings[column];
    const before = heading.getAttribute("aria-sort");
    // Numbers begin with the greatest.
    const first = heading.classList.contains("n") ? "descending" : "ascending";
    const next = { ascending: "descending", descending: "ascending" }[before] || first;
    headings.forEach((one) => one.setAttribute("aria-sort", one === heading ? next : "none"));
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row, index) => {
      const cell = row.cells[column];
      const key = cell.dataset.key;
      return { row, index, key: key === undefined ? null : Number(key), text: cell.textContent };
    });
    const direction = next === "ascending" ? 1 : -1;
    rows.sort((one, other) => compare(one, other, direction) || one.index - other.index);
    body.append(...rows.map((one) => one.row));
  };

  const prepare = (box, number) => {
    const table = box.querySelector("table");
    const headings = Array.from(table.tHead.rows[0].cells);
    headings.forEach((heading, column) => {
      const button = element("button", { type: "button", textContent: heading.textContent });
      heading.replaceChildren(button);
      heading.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sort(table, headings, column));
    });
    const rows = Array.from(table.tBodies[0].rows);
    if (rows.length < 6) return;
    const bar = element("div", { className: "bar" });
    const id = "filter-" + number;
    element("label", { htmlFor: id, textContent: "Filter " + table.caption.textContent }, bar);
    const field = element("input", { type: "search", id, autocomplete: "off", spellcheck: false }, bar);
    const count = element("output", { htmlFor: id, textContent: rows.length + " rows" }, bar);
    const texts = new Map(rows.map((row) => [row, plain(Array.from(row.cells, (cell) => cell.textContent).join(" "))]));
    field.addEventListener("input", () => {
      const words = plain(field.value).split(" ");
      let shown = 0;
      for (const [row, text] of texts) {
        row.hidden = !words.every((word) => text.includes(word));
        if (!row.hidden) shown += 1;
      }
      count.textContent = shown === rows.length ? rows.length + " rows" : shown + " of " + rows.length + " rows";
    });
    box.prepend(bar);
  };

  const copy = async (code, button) => {
    const text = code.textContent;
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Pages of files may lack the clipboard: the text is selected, and copied the old way.
      const range = document.createRange();
      range.selectNodeContents(code);
      const selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      done = document.execCommand("copy");
    }
    button.textContent = done ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  };

  // A box that scrolls can be reached by keyboard.
  const reachable = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      const scrolls = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
      if (!scrolls) {
        ["tabindex", "role", "aria-label"].forEach((name) => box.removeAttribute(name));
        continue;
      }
      const caption = box.querySelector("caption, svg > title");
      box.setAttribute("tabindex", "0");
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", caption ? caption.textContent : "Wide content");
    }
  };

  const enlargeable = (figure) => {
    const svg = figure.querySelector("svg");
    if (Number(svg.getAttribute("width")) <= 960) return;
    const button = element("button", { type: "button", className: "size", textContent: "Full size" });
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      const full = figure.classList.toggle("full");
      button.setAttribute("aria-pressed", String(full));
      reachable();
    });
    figure.prepend(button);
  };

  document.querySelectorAll(".table").forEach(prepare);
  document.querySelectorAll("figure").forEach(enlargeable);
  document.querySelectorAll(".copied").forEach((box) => {
    const button = element("button", { type: "button", textContent: "Copy" }, box);
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", () => copy(box.querySelector("code"), button));
  });
  reachable();
  window.addEventListener("resize", reachable);
})();
