// Sorting, the theme, and what the pointer shows. Everything on the page can be read without it.
"use strict";

(() => {
  const root = document.documentElement;

  // ---------------------------------------------------------------- theme

  const theme = document.querySelector(".theme");
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  const label = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
  };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  label();

  // ---------------------------------------------------------------- sorting

  const order = new Intl.Collator("en", { numeric: true });
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.sort === undefined ? cell.textContent.trim() : cell.dataset.sort;
  };
  const compare = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? order.compare(a, b) : x - y;
  };
  const sortBy = (head) => {
    const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const body = head.closest("table").tBodies[0];
    const rows = Array.from(body.rows, (row) => [keyOf(row, head.cellIndex), row]);
    // What has no value stays at the end, whatever the direction.
    rows.sort(([a], [b]) => (a === "" || b === "" ? (a === "") - (b === "") : direction * compare(a, b)));
    body.append(...rows.map(([, row]) => row));
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
  };
  for (const head of document.querySelectorAll("table[data-sortable] th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort by this column";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sortBy(head));
  }

  // ---------------------------------------------------------------- what the pointer shows

  const tip = document.getElementById("tip");
  const heat = new WeakMap();
  const cellOf = (svg, event) => {
    if (!heat.has(svg)) heat.set(svg, JSON.parse(svg.dataset.heat));
    const { names, rows, left, top, size, unit } = heat.get(svg);
    const matrix = svg.getScreenCTM();
    if (!matrix) return "";
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    const [column, row] = [Math.floor((at.x - left) / size), Math.floor((at.y - top) / size)];
    if (!(row in rows) || !(column in names) || row === column) return "";
    const [first, second] = row < column ? [row, column] : [column, row];
    const value = rows[first][second - first - 1];
    return `${names[row]} – ${names[column]}\n${value === null ? "not measured" : `${value} ${unit}`}`;
  };
  const textAt = (event) => {
    const svg = event.target.closest("svg[data-heat]");
    if (svg) return cellOf(svg, event);
    const marked = event.target.closest("[data-tip]");
    return marked ? marked.dataset.tip : "";
  };
  const show = (event) => {
    const text = event.target instanceof Element ? textAt(event) : "";
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - width - 8);
    const top = event.clientY + 18 + height > window.innerHeight ? event.clientY - height - 10 : event.clientY + 18;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
})();
