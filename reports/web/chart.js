// Charts by Apache ECharts, where the page was built with it. Colours are Okabe and Ito's, which colour-blind readers
// can tell apart; bars have patterns and points have shapes as well.
const VARIANT_STYLES = {
  naive: { color: "#8a8a8a", symbol: "triangle" },
  cublas: { color: "#0072b2", symbol: "rect" },
  eigen: { color: "#0072b2", symbol: "rect" },
  fused: { color: "#d55e00", symbol: "circle" },
};
const OTHER_STYLES = [
  { color: "#009e73", symbol: "diamond" },
  { color: "#cc79a7", symbol: "pin" },
  { color: "#56b4e9", symbol: "roundRect" },
  { color: "#e69f00", symbol: "arrow" },
];
const PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8a8a8a", "#f0e442"];

function variantStyle(report, variant) {
  if (Object.hasOwn(VARIANT_STYLES, variant)) return VARIANT_STYLES[variant];
  report.otherVariants ??= new Map(distinct(report.rows, (row) => row.variant)
    .filter((name) => !Object.hasOwn(VARIANT_STYLES, name)).map((name, i) => [name, i]));
  return OTHER_STYLES[(report.otherVariants.get(variant) ?? 0) % OTHER_STYLES.length];
}

const NO_CHARTS = "Charts are drawn by Apache ECharts, which this build of fusebench does not have: run `npm ci` in "
  + "reports/web, build again, then `fusebench report` on the run's folder. The figures are in the tables.";

const openCharts = new Set();
function cssColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Braces would be read as styles, or as a template's figures.
const plainText = (text) => String(text ?? "").replaceAll("{", "(").replaceAll("}", ")");

// ECharts looks names of series up in plain objects, where "constructor" is always found, and "hasOwnProperty" is
// called: what begins with a colon is no member of theirs. Readers do not see it.
const seriesName = (name) => `:${name}`;
const withoutColon = (name) => name.slice(1);

// Draws into a new element of `root`. `label` says what the chart shows, for those who cannot see it. The option is
// ECharts' own; what all charts share is added here. `tip` says what hovering tells of a datum, `onclick` what a click
// does.
function drawChart(root, label, option, { tip, height = 360, onclick = null }) {
  if (typeof echarts === "undefined") {
    root.append(h("p", { class: "note" }, NO_CHARTS));
    return;
  }
  const element = h("div", { class: "chart", role: "img", "aria-label": label });
  element.style.height = `${height}px`;
  root.append(element);
  const chart = echarts.init(element, null, { renderer: "canvas" });
  const ink = cssColor("--ink");
  const soft = cssColor("--soft");
  const line = cssColor("--line");
  // Ends that figures out of all bounds do not give are ECharts' to choose.
  const bounds = ({ min, max, interval }) => Object.fromEntries(Object.entries({ min, max, interval })
    .filter(([, end]) => typeof end === "number" && !Number.isFinite(end)).map(([name]) => [name, undefined]));
  const axis = (one) => ({
    nameTextStyle: { color: soft },
    axisLine: { lineStyle: { color: line } },
    splitLine: { show: one.type !== "category", lineStyle: { color: line } },
    ...one,
    ...bounds(one),
    axisLabel: { color: soft, ...one.axisLabel },
  });
  const axes = (given) => (given === undefined ? undefined : Array.isArray(given) ? given.map(axis) : axis(given));
  const image = { title: "save as image", name: "fusebench", backgroundColor: cssColor("--paper"), pixelRatio: 2 };
  const text = { color: ink };
  const named = (one) => (one.name ? { ...one, name: seriesName(one.name) } : seriesName(one));
  chart.setOption({
    animation: false,
    color: PALETTE,
    backgroundColor: "transparent",
    textStyle: { color: ink, fontFamily: "system-ui, sans-serif" },
    aria: { enabled: true, label: { description: label }, decal: { show: true } },
    toolbox: { right: 8, feature: { saveAsImage: image }, iconStyle: { borderColor: soft } },
    ...option,
    // Rich text is drawn into the canvas: the page's policy allows no inline styles.
    tooltip: { trigger: "item", renderMode: "richText", confine: true, backgroundColor: cssColor("--head"),
      borderColor: line, textStyle: { ...text, fontSize: 12 },
      formatter: (item) => plainText(tip({ ...item, seriesName: withoutColon(item.seriesName) })) },
    legend: option.legend ? { type: "scroll", top: 4, left: 0, right: 50, textStyle: text, pageTextStyle: text,
      formatter: withoutColon, ...option.legend, data: option.legend.data?.map(named) } : undefined,
    series: option.series.map(named),
    xAxis: axes(option.xAxis),
    yAxis: axes(option.yAxis),
  });
  if (onclick) chart.on("click", onclick);
  openCharts.add(chart);
}

// A line across a chart at { xAxis } or { yAxis }.
const lineAt = (at, color = "--ink", { type = "solid", label = { show: false } } = {}) => ({
  silent: true, symbol: "none", animation: false, label, lineStyle: { color: cssColor(color), type, width: 1 },
  data: [at] });

// Before a part is drawn anew.
function disposeCharts(root) {
  for (const chart of openCharts) {
    if (!root.contains(chart.getDom())) continue;
    chart.dispose();
    openCharts.delete(chart);
  }
}

window.addEventListener("resize", () => openCharts.forEach((chart) => chart.resize()));
// Charts draw themselves with the next frame, which is too late for paper.
function flushCharts() {
  for (const chart of openCharts) chart.getZr().flush();
}
