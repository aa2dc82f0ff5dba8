/** What the noise costs and buys, under the slider; and the table that says how strong the attacker is. */

import { fixed, number, say, short } from "./words.js";

const HEIGHT = 76, TOP = 8, LABELS = 18;

function svg(name, attributes, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

/** Two lines over the stops of the slider: the accuracy, and how alike the attacker's pictures are. */
export function drawTrade(page, current) {
  const { stops, sigma, own } = page.defended;
  const chart = document.getElementById("trade");
  const x = (place) => `${(100 * place) / (stops.length - 1)}%`;
  const y = (value) => TOP + (1 - Math.max(0, value)) * (HEIGHT - TOP - LABELS);
  const parts = [svg("line", { x1: x(own), x2: x(own), y1: 0, y2: HEIGHT - LABELS, class: "own" })];
  const lines = { accuracy: (stop) => stop.accuracy, leak: (stop) => stop.leak.ssim };
  for (const [name, of] of Object.entries(lines)) {
    stops.slice(1).forEach((stop, i) =>
      parts.push(svg("line", { x1: x(i), x2: x(i + 1), y1: y(of(stops[i])), y2: y(of(stop)), class: name })));
    stops.forEach((stop, place) =>
      parts.push(svg("circle", { cx: x(place), cy: y(of(stop)), r: place === current ? 5 : 2.5, class: name })));
  }
  stops.forEach((stop, place) =>
    parts.push(svg("text", { x: x(place), y: HEIGHT - 3, class: place === own ? "own" : "" }, short(sigma * stop.scale))));
  chart.replaceChildren(...parts);
  const { accuracy, leak } = stops[current];
  const at = { sigma: short(sigma * stops[current].scale), accuracy: fixed(accuracy, 3), ssim: fixed(leak.ssim, 2) };
  chart.setAttribute("aria-label", say("trade", { ...at, images: number(page.images) }));
  document.querySelector(".key .accuracy").textContent = say("keyAccuracy", { value: at.accuracy });
  document.querySelector(".key .leak").textContent = say("keyLeak", { value: at.ssim });
}

const both = ({ mse, ssim }) => `${fixed(mse, 4)} / ${fixed(ssim, 2)}`;

/** Every number that tells how far to trust what is seen, for both networks. */
export function writeNumbers(page, current, errors) {
  const sides = [page.defended, page.undefended];
  const images = { images: number(page.images) };
  const rows = [
    ["rowNow", errors.map((mse) => fixed(mse, 4))],
    ["rowStop", sides.map((side, i) => both(side.stops[i ? side.own : current].leak))],
    ["rowOwn", sides.map((side) => both(side.stops[side.own].leak))],
    ["rowAudited", sides.map((side) => both(side.audited))],
    ["rowWorst", sides.map((side) => both(side.worst)), "worst"],
    ["rowMean", sides.map(() => both(page.mean_image))],
    ["rowAccuracy", sides.map((side) => fixed(side.accuracy, 3))],
    ["rowSuite", sides.map((side) => side.suite)],
  ];
  const head = [say("meanErrors"), say("defended"), say("undefended")];
  const table = document.getElementById("numbers");
  table.replaceChildren(row(head, "col"), ...rows.map(([name, values, kind]) => row([say(name, images), ...values], "row", kind)));
  document.getElementById("about").textContent = say("about", { attacker: page.defended.attacker });
}

function row(cells, scope, kind = "") {
  const made = document.createElement("tr");
  made.className = kind;
  made.append(...cells.map((text, place) => {
    const cell = document.createElement(scope === "col" || !place ? "th" : "td");
    if (cell.tagName === "TH") cell.scope = scope;
    cell.textContent = text;
    return cell;
  }));
  return made;
}
