// Charts: data from the page, colours from its style sheet, drawn when they come into sight.
"use strict";
const charts = (() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("chart-data").textContent);
  const plots = [...document.querySelectorAll(".plot")];
  const folded = [...document.querySelectorAll(".flagged details, .verdict details:not(.behind)")];

  const css = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();

  function themed(value) {
    if (value === "@heat") return [[0, css("heat-low")], [0.15, css("heat-mid")], [1, css("heat-high")]];
    if (typeof value === "string" && value.startsWith("@")) return css(value.slice(1));
    if (Array.isArray(value)) return value.map(themed);
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, themed(inner)]));
    return value;
  }

  function axis(given) {
    const title = given && given.title ? { ...given.title, font: { size: 12, color: css("soft") }, standoff: 8 } : {};
    const line = { gridcolor: css("rule"), linecolor: css("rule"), zeroline: false, automargin: true };
    return { ...line, tickfont: { size: 11, color: css("soft") }, ...given, title };
  }

  function legendRows(traces, width) {
    const names = traces.filter((trace) => trace.showlegend !== false).map((trace) => trace.name || "");
    if (names.length < 2) return 0;
    const widest = Math.max(...names.map((name) => 46 + 6.4 * name.length));
    return Math.ceil(names.length / Math.max(1, Math.floor((width - 20) / widest)));
  }

  function layoutOf(plot, drawn, width) {
    const given = themed(drawn.layout), rows = legendRows(drawn.traces, width);
    return {
      hovermode: "x unified", ...given, width, height: Number(plot.dataset.height) + 19 * rows,
      xaxis: axis(given.xaxis), yaxis: axis(given.yaxis), showlegend: rows > 0,
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: css("font"), size: 12, color: css("ink") },
      margin: { l: 48, r: 14, t: 10, b: 46 + 19 * rows },
      legend: { orientation: "h", x: 0, xanchor: "left", y: 0, yref: "container", yanchor: "bottom", font: { size: 11 } },
      hoverlabel: { bgcolor: css("raised"), bordercolor: css("rule"), font: { size: 12, color: css("ink") }, namelength: -1 },
    };
  }

  function draw(plot) {
    const drawings = data[plot.dataset.chart];
    const drawn = drawings[plot.dataset.pick || Object.keys(drawings)[0]];
    plot.closest("figure").hidden = !drawn;
    if (!drawn) return;
    const width = plot.clientWidth;
    if (!width) return;
    plot.dataset.drawn = "yes";
    const traces = themed(drawn.traces);
    if (width < 480) for (const trace of traces) trace.mode = trace.mode && trace.mode.replace("+text", "");
    Plotly.react(plot, traces, layoutOf(plot, drawn, width), { displayModeBar: false });
  }

  const redraw = () => plots.filter((plot) => plot.dataset.drawn).forEach(draw);

  function pick(group, name) {
    for (const plot of plots.filter((plot) => plot.dataset.group === group)) {
      plot.dataset.pick = name;
      draw(plot);
    }
    for (const legend of document.querySelectorAll(`[data-only="${group}"]`)) legend.hidden = name !== "all runs";
  }

  function forPrint(on) {
    root.classList.toggle("printing", on);
    for (const details of folded) details.open = on;
    plots.filter((plot) => plot.offsetParent !== null).forEach(draw);
  }

  const sight = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((entry) => entry.isIntersecting)) {
      sight.unobserve(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "600px" });
  plots.forEach((plot) => sight.observe(plot));

  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; redraw(); } });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => forPrint(true));
  addEventListener("afterprint", () => forPrint(false));
  for (const control of document.querySelectorAll("[data-picks]"))
    control.addEventListener("change", () => pick(control.dataset.picks, control.value));
  return { draw, redraw };
})();
