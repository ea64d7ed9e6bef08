// What of a page cannot be read: an expression whose value is a list of complaints, each once for each kind of element.
// Contrast: https://www.w3.org/TR/WCAG22/#contrast-minimum (4.5:1) and #dfn-relative-luminance.
(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const paint = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (above, below) => [0, 1, 2].map((i) => above[i] * above[3] + below[i] * (1 - above[3]));
  const luminance = (color) => {
    const part = (value) => (value <= 0.03928 * 255 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(color[0]) + 0.7152 * part(color[1]) + 0.0722 * part(color[2]);
  };
  const parents = (element) => (element ? [element, ...parents(element.parentElement)] : []);
  const ground = (line) => line.reduceRight((below, each) => over(paint(getComputedStyle(each).backgroundColor), below), [255, 255, 255]);
  const kind = (element) => `${element.tagName.toLowerCase()}.${element.getAttribute("class") ?? ""}`;
  const paper = matchMedia("print").matches;
  const edge = document.documentElement.clientWidth;
  const found = new Map();
  const complain = (what, element, text) => {
    const key = `${what}: ${kind(element)}`;
    if (!found.has(key)) found.set(key, `${key}: ${text.trim().slice(0, 40)}`);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode, element = text.parentElement, range = document.createRange();
    range.selectNodeContents(text);
    const box = range.getBoundingClientRect(), style = getComputedStyle(element), line = parents(element);
    if (!text.data.trim() || !box.width || style.visibility === "hidden") continue;
    const drawing = element.ownerSVGElement;
    const below = ground(line), alpha = line.reduce((all, each) => all * getComputedStyle(each).opacity, 1);
    const ink = paint(drawing ? style.fill : style.color);
    const [dark, light] = [luminance(over([...ink.slice(0, 3), ink[3] * alpha], below)), luminance(below)].sort((a, b) => a - b);
    if ((light + 0.05) / (dark + 0.05) < 4.5) complain("contrast", element, text.data);
    const turn = drawing ? element.getScreenCTM() : { a: 1, b: 0, c: 0, d: 1 };
    const scale = Math.sqrt(Math.abs(turn.a * turn.d - turn.b * turn.c));
    if (parseFloat(style.fontSize) * scale < 8.5) complain("small", element, text.data);
    if (!line.some((each) => /auto|scroll/.test(getComputedStyle(each).overflowX)) && (box.right > edge + 1 || box.left < -1))
      complain("beyond the edge", element, text.data);
    const place = drawing?.getBoundingClientRect();
    if (place && (box.left < place.left - 1 || box.right > place.right + 1 || box.bottom > place.bottom + 1))
      complain("outside its drawing", element, text.data);
    if (paper && element.closest("td"))
      for (const word of text.data.matchAll(/[\w./-]+/g)) {
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        if (/^\w{2,12}$/.test(word[0]) && new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size > 1)
          complain("a word on two lines", element.closest("td"), word[0]);
      }
  }
  for (const head of document.querySelectorAll("th")) if (!head.textContent.trim()) complain("no title", head, head.closest("section").id);
  if (!paper && edge >= 1280)
    for (const each of document.querySelectorAll(".wide, nav ul"))
      if (each.scrollWidth > each.clientWidth + 1) complain("scrolls at a desk", each, each.textContent);
  if (document.documentElement.scrollWidth > edge) complain("wider than the window", document.documentElement, String(edge));
  return [...found.values()];
})()
