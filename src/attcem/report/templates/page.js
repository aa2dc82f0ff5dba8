// The gallery sorts and filters, tables copy themselves, and a link to a run opens its configuration.
const tell = (text) => { document.getElementById("said").textContent = text; };

for (const gallery of document.querySelectorAll(".gallery")) {
  const body = gallery.querySelector("tbody"), rows = [...body.rows];
  const label = gallery.querySelector("select"), count = gallery.querySelector(".count");

  const filter = () => {
    for (const row of rows) row.hidden = label.value ? row.dataset.label !== label.value : !row.dataset.why;
    const shown = rows.filter((row) => !row.hidden).length;
    count.textContent = (shown === 1 ? {{ say("1 picture") | tojson }} : {{ say("{{count}} pictures") | tojson }}).replace("{count}", shown);
  };
  label.addEventListener("change", filter);
  filter();

  for (const button of gallery.querySelectorAll("[data-sort]")) {
    button.addEventListener("click", () => {
      const heading = button.closest("th"), rising = heading.getAttribute("aria-sort") !== "ascending";
      for (const other of heading.parentElement.querySelectorAll("[aria-sort]")) other.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const leak = (row) => Number(row.cells[Number(button.dataset.sort) + 1].dataset.leak);
      rows.sort((one, other) => (rising ? 1 : -1) * (leak(one) - leak(other)));
      body.append(...rows);
      tell((rising ? {{ say("sorted by {{name}}, most leaking first") | tojson }} : {{ say("sorted by {{name}}, least leaking first") | tojson }}).replace("{name}", button.textContent));
    });
  }
}

const read = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => {
  const copy = cell.cloneNode(true);
  copy.querySelectorAll("[data-not-copied], img").forEach((part) => part.remove());
  copy.querySelectorAll("small").forEach((part) => part.prepend(" "));
  return copy.textContent.replace(/[\s\u00a0\u202f]+/g, " ").trim();
}));
const MARKDOWN = {
  "\\": "\\\\", "`": "\\`", "*": "\\*", "_": "\\_", "[": "\\[", "~": "\\~", "$": "\\$",
  "&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;",
};
const TEX = {
  "\\": "\\textbackslash{}", "&": "\\&", "%": "\\%", "$": "\\$", "#": "\\#", "_": "\\_", "{": "\\{", "}": "\\}",
  "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "$<$", ">": "$>$", "±": "$\\pm$", "×": "$\\times$", "–": "--",
  "−": "$-$", "·": "$\\cdot$", "≤": "$\\leq$", "≥": "$\\geq$", "↑": "$\\uparrow$", "↓": "$\\downarrow$", "’": "'", "σ": "$\\sigma$",
  "λ": "$\\lambda$", "ε": "$\\varepsilon$", "δ": "$\\delta$", "γ": "$\\gamma$", "|": "\\textbar{}", "[": "{[}",
};
const escaped = (letters) => (text) => [...text].map((letter) => letters[letter] ?? letter).join("");
// A spreadsheet would compute a cell that begins like a formula instead of showing it; a signed number may begin so.
const FORMULA = /^[=+\-@]/, NUMBER = /^[+-]?\d[\d.e+\- %±]*$/;
const FORMATS = {
  markdown(grid) {
    const line = (cells) => `| ${cells.map(escaped(MARKDOWN)).join(" | ")} |`;
    return [line(grid[0]), `|${" --- |".repeat(grid[0].length)}`, ...grid.slice(1).map(line)].join("\n");
  },
  latex(grid, table) {
    const columns = [...table.rows[0].cells].map((cell) => (cell.classList.contains("number") ? "r" : "l")).join("");
    const [head, ...rest] = grid.map((cells) => `${cells.map(escaped(TEX)).join(" & ")} \\\\`);
    return [`\\begin{tabular}{${columns}}`, "\\hline", head, "\\hline", ...rest, "\\hline", "\\end{tabular}"].join("\n");
  },
  csv(grid) {
    const shown = (cell) => (FORMULA.test(cell) && !NUMBER.test(cell) ? `'${cell}` : cell);
    const quoted = (cell) => (/[",]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell);
    return grid.map((cells) => cells.map(shown).map(quoted).join(",")).join("\n");
  },
};

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

for (const button of document.querySelectorAll("[data-copy]")) {
  const name = button.textContent;
  button.addEventListener("click", async () => {
    const table = button.closest(".table").querySelector("table");
    await copy(FORMATS[button.dataset.copy](read(table), table));
    button.textContent = {{ say("Copied") | tojson }};
    tell({{ say("table copied as {{name}}") | tojson }}.replace("{name}", name));
    setTimeout(() => { button.textContent = name; }, 1500);
  });
}

const open = () => {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.tagName === "DETAILS") {
    target.open = true;
    target.querySelector("summary").focus({ preventScroll: true });
    target.scrollIntoView();
  }
};
addEventListener("hashchange", open);
open();
