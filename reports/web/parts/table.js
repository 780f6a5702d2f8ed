// Every row that the filters leave. Only the lines in view are in the document, so that many rows scroll as ten do.

const LINE_PX = 28;
const LINES_BEYOND = 12; // drawn above and below what is in view
const LINES_ON_PAPER = 300;
const LINE_GROUPS = ["op", "variant", "verdict", "dtype", "mode", "case_id"];
const USUAL_COLUMNS = ["case_id", "variant", "mode", "verdict", "median_us", "ci95_rel", "speedup_vs_cublas",
  "speedup_vs_naive", "floor_share", "measured_bytes", "bytes_modelled", "error_share", "workspace_bytes", "launches"];
// What the page makes of other columns, and which it stands behind.
const MADE_COLUMNS = [
  { after: "load", name: "mode", unit: "", description: "cache, graph and load together", reason: "" },
  { after: "budget_max_abs", name: "error_share", unit: "",
    description: "the larger of rel_l2 and max_abs, each over its budget: up to 100% passes", reason: "check_reason" },
  { after: "dram_write_bytes", name: "measured_bytes", unit: "bytes",
    description: "dram_read_bytes + dram_write_bytes: all that crossed to and from HBM, by the counters",
    reason: "traffic_reason" },
];
const SHARE_DIGITS = { floor_share: 0, error_share: 0, ci95_rel: 2 };
const SHOWN_UNITS = { bytes: "MB", FLOP: "GFLOP" };
const shownUnit = (unit) => SHOWN_UNITS[unit] ?? unitText(unit);

function allColumns(report) {
  return report.columns.flatMap((column) => [column, ...MADE_COLUMNS.filter((made) => made.after === column.name)]);
}

// A run in one mode needs no column to say so.
function usualColumns(report) {
  const isOneMode = report.rows.every((row) => row.mode === report.rows[0].mode);
  return USUAL_COLUMNS.filter((name) => name !== "mode" || !isOneMode);
}

function columnsInAddress(report, state, all) {
  const byName = new Map(all.map((column) => [column.name, column]));
  const named = [...new Set(state.get("columns").split(","))].filter((name) => byName.has(name));
  return (named.length > 0 ? named : usualColumns(report)).map((name) => byName.get(name));
}

function sortInAddress(state, all) {
  const [, minus, name] = /^(-?)(.*)$/s.exec(state.get("sort"));
  return all.some((column) => column.name === name) ? { name, isDescending: minus === "-" } : null;
}

// --- what a cell says ---

const isMissing = (value) => value === null || value === undefined;

function whyMissing(report, object, column, columns) {
  const reason = reasonOf(report, object, column.name, columns);
  if (reason) return String(reason);
  return column.name.endsWith("reason") ? "nothing to explain" : "not known";
}

function plainFigure(value) {
  if (value === Infinity) return "\u221e";
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) < 1e-3 ? value.toExponential(3) : fourDigits(value);
}

function figureText(column, object) {
  const value = object[column.name];
  if (isMissing(value)) return NONE;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  if (column.unit === "bytes") return formatMb(value);
  if (column.unit === "FLOP") return fourDigits(value / 1e9);
  if (column.name.startsWith("speedup_")) {
    return formatTimes(value, object[`${column.name}_lo`], object[`${column.name}_hi`]);
  }
  const digits = SHARE_DIGITS[column.name];
  if (digits === undefined) return column.unit === "" ? plainFigure(value) : fourDigits(value);
  return digits > 0 ? `${(100 * value).toFixed(digits)}%` : value === Infinity ? "\u221e" : formatPercent(value);
}

// { text, title, class }: short text, and on hover the exact value or why there is none.
function figureCell(report, column, object, columns, isFigure = column.unit !== "") {
  const value = object[column.name];
  const text = figureText(column, object);
  const css = typeof value === "number" ? "n" : null;
  if (isMissing(value)) {
    return { text, title: whyMissing(report, object, column, columns), class: isFigure ? "n soft" : "soft" };
  }
  const title = typeof value === "number" && column.unit ? `${value} ${unitText(column.unit)}` : String(value);
  if (column.name === "verdict") return { text: verdictText(value), title: object.reason ?? title, class: css };
  if (column.name === "error_share" && value > 1) return { text, title, class: "n fail" };
  return { text, title, class: css };
}

// A column's name as a head: its unit stands under it, and the exact name is in its title.
function headWords(report, name) {
  const words = name.split("_").filter((part) => !["us", "bytes", "mhz", "w", "c"].includes(part)).join(" ");
  const isOver = name.startsWith("speedup_vs_cublas") && report.baseline;
  return isOver ? words.replace("cublas", report.baseline) : words;
}

function headCell(report, column, columns) {
  return { words: headWords(report, column.name), unit: shownUnit(column.unit),
    title: columnHelp(report, column.name, columns) };
}

// --- which lines, in which order ---

const inWords = new Intl.Collator("en", { numeric: true });

function compareValues(a, b) {
  if (typeof a === "string" || typeof b === "string") return inWords.compare(a, b);
  return a === b ? 0 : a < b ? -1 : 1;
}

// What is not known comes last in both directions.
function sortRows(rows, sort) {
  if (sort === null) return rows;
  const sign = sort.isDescending ? -1 : 1;
  const known = rows.filter((row) => !isMissing(row[sort.name]));
  const missing = rows.filter((row) => isMissing(row[sort.name]));
  return [...known.sort((a, b) => sign * compareValues(a[sort.name], b[sort.name])), ...missing];
}

// A line is { row }, or { group, rows } above the rows of a group.
function linesOf(rows, group, isOpen) {
  if (group === "") return rows.map((row) => ({ row }));
  return [...groupBy(rows, (row) => String(row[group]))].flatMap(([value, members]) =>
    [{ group: value, rows: members }, ...(isOpen(value) ? members.map((row) => ({ row })) : [])]);
}

function countsInWords(rows) {
  const others = countBy(rows.map((row) => row.verdict).filter((verdict) => verdict !== "pass"));
  return [plural(rows.length, "row"), ...[...others].map(([verdict, count]) => `${count} ${verdict}`)].join(", ");
}

// --- the grid ---

class RowGrid {
  constructor(root, view) {
    this.report = view.report;
    this.state = view.state;
    this.view = view;
    this.all = allColumns(this.report);
    this.columns = columnsInAddress(this.report, this.state, this.all);
    this.sort = sortInAddress(this.state, this.all);
    this.group = LINE_GROUPS.includes(this.state.get("group")) ? this.state.get("group") : "";
    this.active = 0;
    this.drawn = new Map();
    this.build(root);
    this.drawHeads();
    this.setLines();
    this.showChosen();
    new ResizeObserver(() => this.drawLines()).observe(this.scroller);
  }

  build(root) {
    this.heads = h("tr", { "aria-rowindex": "1" });
    this.widths = h("colgroup");
    this.body = h("tbody", { onclick: (event) => this.onClick(event) });
    this.grid = h("table", { role: "grid", tabindex: "0", "aria-label": "rows: arrow keys move, Enter opens",
      onkeydown: (event) => this.onKey(event) },
      this.widths, h("thead", { onkeydown: (event) => this.onHeadKey(event) }, this.heads), this.body);
    this.sizer = h("div", {}, this.grid);
    this.scroller = h("div", { class: "rows-scroller", onscroll: () => this.drawLines() }, this.sizer);
    this.scroller.style.setProperty("--line-height", `${LINE_PX}px`);
    this.detail = h("aside", { class: "rows-detail", "aria-label": "detail of the row", tabindex: "0", hidden: true,
      onkeydown: (event) => { if (event.key === "Escape") this.close(); } });
    this.note = h("p", { class: "note", hidden: true });
    this.paper = h("div", { class: "rows-paper" });
    this.split = h("div", { class: "rows-split" }, this.scroller, this.detail);
    append(root, [this.tools(), this.note, this.split, this.paper]);
  }

  // --- above the grid ---

  tools() {
    const option = (name) => h("option", { value: name, selected: name === this.group }, name || "nothing");
    const select = h("select", { onchange: () => this.groupBy(select.value) }, ["", ...LINE_GROUPS].map(option));
    this.fold = h("button", { type: "button", class: "fold", onclick: () => this.setAllOpen(!this.isAnyOpen()) });
    this.told = h("span", { class: "soft", "aria-live": "polite" });
    return h("div", { class: "rows-tools" },
      h("label", {}, "group by ", select), this.fold, this.chooser(), this.told,
      h("span", { class: "soft keys" }, "A head sorts, a row opens. Keys: arrows, Enter, Esc."));
  }

  chooser() {
    this.summary = h("summary");
    this.boxes = this.all.map(({ name }) => h("input", { type: "checkbox", value: name,
      onchange: (event) => this.toggle(name, event.target.checked) }));
    const everyName = this.all.map((column) => column.name).join(",");
    return h("details", { class: "rows-columns" }, this.summary,
      h("p", {},
        h("button", { type: "button", onclick: () => this.choose("") }, "the usual columns"), " ",
        h("button", { type: "button", onclick: () => this.choose(everyName) }, "all columns")),
      h("div", { class: "boxes" }, this.all.map((column, i) =>
        h("label", { title: columnHelp(this.report, column.name, this.all) }, this.boxes[i], " ", column.name))));
  }

  // A column that is added comes last, where it can be seen coming.
  toggle(name, isWanted) {
    const others = this.columns.map((column) => column.name).filter((one) => one !== name);
    this.choose((isWanted ? [...others, name] : others).join(","));
    if (isWanted) this.scroller.scrollLeft = this.scroller.scrollWidth;
  }

  choose(names) {
    this.state.keep({ columns: names === usualColumns(this.report).join(",") ? "" : names });
    this.columns = columnsInAddress(this.report, this.state, this.all);
    this.drawHeads();
    this.setLines();
  }

  groupBy(group) {
    this.state.keep({ group });
    this.group = group;
    this.setAllOpen(true);
  }

  // The address has whether groups are open or closed, and which are not as the others: of thousands not every name.
  setAllOpen(isOpen) {
    this.state.keep({ groups: isOpen ? "" : "closed", except: [] });
    this.setLines();
  }

  isOpen(group) {
    return (this.state.get("groups") === "closed") === this.state.get("except").includes(group);
  }

  isAnyOpen() {
    return this.lines.some((line) => line.row);
  }

  sortBy(name) {
    const isSame = this.sort?.name === name;
    this.sort = isSame && this.sort.isDescending ? null : { name, isDescending: isSame };
    this.state.keep({ sort: this.sort === null ? "" : `${this.sort.isDescending ? "-" : ""}${name}` });
    this.setLines();
  }

  tell() {
    this.summary.textContent = `${this.columns.length} of ${this.all.length} columns`;
    for (const box of this.boxes) box.checked = this.columns.some((column) => column.name === box.value);
    this.fold.hidden = this.group === "";
    this.fold.textContent = this.isAnyOpen() ? "close all groups" : "open all groups";
    this.told.textContent = this.sort === null ? "in the run's order"
      : `sorted by ${this.sort.name}, ${this.sort.isDescending ? "largest" : "smallest"} first`;
    for (const head of this.heads.children) {
      const isSorted = head.dataset.column === this.sort?.name;
      head.setAttribute("aria-sort", isSorted ? (this.sort.isDescending ? "descending" : "ascending") : "none");
    }
  }

  // --- heads ---

  drawHeads() {
    const sample = this.sample();
    this.figures = new Set(this.columns.map((column) => column.name)
      .filter((name) => this.view.rows.some((row) => typeof row[name] === "number")));
    replaceChildren(this.heads, this.columns.map((column, i) => this.head(column, i)));
    const widths = this.columns.map((column) => this.widthOf(column, sample));
    replaceChildren(this.widths, widths.map((width) => {
      const col = h("col");
      col.style.width = `${width}px`;
      return col;
    }));
    this.grid.style.width = `${widths.reduce((sum, width) => sum + width, 0)}px`;
  }

  // One head is reached by Tab, the others by arrows from there.
  head(column, i) {
    const { words, unit, title } = headCell(this.report, column, this.all);
    return h("th", { scope: "col", "data-column": column.name, title,
      class: this.figures.has(column.name) ? "n" : null },
      h("button", { type: "button", tabindex: i === 0 ? "0" : "-1", onclick: () => this.sortBy(column.name) },
        h("span", {}, words), h("small", {}, unit)));
  }

  onHeadKey(event) {
    const buttons = [...this.heads.querySelectorAll("button")];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const to = buttons[buttons.indexOf(event.target) + step];
    if (event.key === "ArrowDown") this.grid.focus({ preventScroll: true });
    else if (!to) return;
    event.preventDefault();
    if (!to) return;
    buttons.forEach((button) => button.setAttribute("tabindex", button === to ? "0" : "-1"));
    to.focus();
  }

  sample() {
    const step = Math.max(1, Math.floor(this.view.rows.length / 300));
    return this.view.rows.filter((_, i) => i % step === 0);
  }

  widthOf(column, sample) {
    this.pen ??= document.createElement("canvas").getContext("2d");
    this.pen.font = getComputedStyle(this.grid).font;
    const longest = (texts) => texts.reduce((best, text) => (text.length > best.length ? text : best), "");
    const head = headCell(this.report, column, this.all);
    const figures = this.pen.measureText(longest(sample.map((row) => figureText(column, row)))).width;
    // Bold, and the mark of the order.
    const words = 1.1 * this.pen.measureText(longest([...head.words.split(" "), head.unit])).width + 12;
    return Math.ceil(Math.min(Math.max(figures + (column.name === "variant" ? 14 : 0), words, 40), 350)) + 20;
  }

  // --- lines ---

  setLines() {
    const active = this.lines?.[this.active];
    this.lines = linesOf(sortRows(this.view.rows, this.sort), this.group, (group) => this.isOpen(group));
    const same = (line) => (line.row ? line.row === active?.row : line.group === active?.group);
    this.active = Math.max(0, this.lines.findIndex(same));
    this.grid.setAttribute("aria-rowcount", String(this.lines.length + 1));
    this.tell();
    this.headPx = this.heads.getBoundingClientRect().height;
    this.sizer.style.height = `${this.headPx + this.lines.length * LINE_PX}px`;
    this.drawn.clear();
    this.drawLines();
  }

  drawLines() {
    const { scrollTop, clientHeight } = this.scroller;
    const top = Math.min(Math.floor(scrollTop / LINE_PX), this.lines.length - 1);
    const bottom = Math.min(Math.ceil((scrollTop + clientHeight) / LINE_PX), this.lines.length);
    if (this.drawn.has(top) && this.drawn.has(bottom - 1)) return;
    const first = Math.max(0, top - LINES_BEYOND);
    const last = Math.min(this.lines.length, bottom + LINES_BEYOND);
    const drawn = new Map();
    for (let i = first; i < last; ++i) drawn.set(i, this.drawn.get(i) ?? this.line(this.lines[i], i));
    this.drawn = drawn;
    this.sizer.style.paddingTop = `${first * LINE_PX}px`;
    this.body.replaceChildren(...drawn.values());
    this.mark();
  }

  line(line, i) {
    const attributes = { id: `rows-line-${i}`, "data-line": i, "aria-rowindex": i + 2 };
    if (line.row) return h("tr", attributes, this.columns.map((column) => this.cell(column, line.row)));
    const isOpen = this.isOpen(line.group);
    return h("tr", { ...attributes, class: "group", "aria-expanded": String(isOpen) },
      h("th", { scope: "rowgroup", colspan: this.columns.length },
        h("span", { class: "stay" }, `${isOpen ? "\u25be" : "\u25b8"} `,
          this.group === "verdict" ? verdictText(line.group) : line.group, h("small", {}, countsInWords(line.rows)))));
  }

  figure(column, row) {
    return figureCell(this.report, column, row, this.all, this.figures.has(column.name));
  }

  cell(column, row) {
    const { text, ...attributes } = this.figure(column, row);
    const cell = h("td", attributes, text);
    if (column.name === "variant") {
      const dot = h("span", { class: "dot", "aria-hidden": "true" });
      dot.style.background = variantStyle(this.report, row.variant).color;
      cell.prepend(dot);
    }
    if (column.name === "floor_share" && isKnown(row.floor_share)) {
      cell.classList.add("part");
      cell.style.setProperty("--share", String(Math.min(1, row.floor_share)));
    }
    return cell;
  }

  mark() {
    for (const [i, element] of this.drawn) {
      const isChosen = this.chosen !== undefined && this.lines[i].row === this.chosen;
      element.classList.toggle("chosen", isChosen);
      element.classList.toggle("active", i === this.active);
      if (this.lines[i].row) element.setAttribute("aria-selected", String(isChosen));
    }
    if (this.drawn.has(this.active)) this.grid.setAttribute("aria-activedescendant", `rows-line-${this.active}`);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  // --- getting about ---

  linesInView() {
    return Math.max(1, Math.floor((this.scroller.clientHeight - this.headPx) / LINE_PX));
  }

  moveTo(i) {
    this.active = Math.max(0, Math.min(i, this.lines.length - 1));
    const top = this.active * LINE_PX;
    const under = top + LINE_PX + this.headPx - this.scroller.clientHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (under > this.scroller.scrollTop) this.scroller.scrollTop = under;
    this.drawLines();
    this.mark();
  }

  onKey(event) {
    if (event.target !== this.grid || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = this.linesInView();
    const to = { ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page,
      PageUp: this.active - page, Home: 0, End: this.lines.length - 1 }[event.key];
    const line = this.lines[this.active];
    if (event.key === "ArrowUp" && this.active === 0) this.heads.querySelector("[tabindex='0']").focus();
    else if (to !== undefined) this.moveTo(to);
    else if (event.key === "Enter" || event.key === " ") this.enter(line);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") this.sideways(line, event.key === "ArrowRight");
    else if (event.key === "Escape" && !this.detail.hidden) this.close();
    else return;
    event.preventDefault();
  }

  // On a group's head the arrows open and close; elsewhere they show what does not fit.
  sideways(line, isRight) {
    if (line.rows) this.setOpen(line.group, isRight);
    else this.scroller.scrollLeft += isRight ? 80 : -80;
  }

  setOpen(group, isOpen) {
    if (isOpen === this.isOpen(group)) return;
    this.state.keep({ except: toggled(this.state.get("except"), group) });
    this.setLines();
  }

  enter(line) {
    if (line.rows) this.setOpen(line.group, !this.isOpen(line.group));
    else this.open(line.row);
  }

  onClick(event) {
    const element = event.target.closest("tr");
    if (!element || String(getSelection()) !== "") return;
    this.active = Number(element.dataset.line);
    this.grid.focus({ preventScroll: true });
    this.enter(this.lines[this.active]);
    this.mark();
  }

  // --- the row that is looked at ---

  // The row that the address names is shown where it stands.
  showChosen() {
    const index = this.state.get("row");
    if (index === "") return;
    const row = this.view.rows.find((one) => String(one.index) === index);
    if (!row) return this.tellHidden(this.report.rows.some((one) => String(one.index) === index));
    if (this.group !== "") this.setOpen(String(row[this.group]), true);
    this.open(row);
    const at = this.lines.findIndex((line) => line.row === row);
    this.scroller.scrollTop = (at - this.linesInView() / 2) * LINE_PX;
    this.moveTo(at);
  }

  tellHidden(isThere) {
    const showAll = () => this.state.set({ q: "", ...Object.fromEntries(FACETS.map((facet) => [facet, []])) });
    const hidden = ["The filters leave out the row that the address names. ",
      h("button", { type: "button", onclick: showAll }, "show all rows")];
    replaceChildren(this.note, isThere ? hidden : "The address names a row that this run does not have.");
    this.note.hidden = false;
  }

  open(row) {
    this.chosen = row;
    this.note.hidden = true;
    this.state.keep({ row: String(row.index) });
    replaceChildren(this.detail, rowDetail(this.view, row, this.all, () => this.close()));
    this.detail.hidden = false;
    this.detail.scrollTop = 0;
    this.split.classList.add("open");
    this.drawLines();
    this.mark();
    // On a narrow screen it is under the lines, where it may not be seen.
    if (this.detail.offsetTop > this.scroller.offsetTop) this.detail.scrollIntoView({ block: "nearest" });
  }

  close() {
    this.chosen = undefined;
    this.state.keep({ row: "" });
    this.detail.hidden = true;
    this.split.classList.remove("open");
    this.drawLines();
    this.mark();
    this.grid.focus({ preventScroll: true });
  }

  // --- paper ---

  toPaper() {
    const rows = this.lines.filter((line) => line.row).length;
    const heads = this.columns.map((column) => {
      const { words, unit } = headCell(this.report, column, this.all);
      return { text: unit ? `${words}, ${unit}` : words, class: this.figures.has(column.name) ? "n" : null };
    });
    const onPaper = (cell) => ({ ...cell, text: typeof cell.text === "string" ? breakable(cell.text) : cell.text });
    const lines = this.lines.slice(0, LINES_ON_PAPER).map((line) =>
      (line.row ? this.columns.map((column) => onPaper(this.figure(column, line.row)))
        : [{ text: `${this.group} ${line.group}: ${countsInWords(line.rows)}`, colspan: this.columns.length }]));
    const shown = Math.min(rows, lines.filter((line) => line[0]?.colspan === undefined).length);
    const all = plural(this.view.rows.length, "row");
    const said = shown < this.view.rows.length ? `The first ${shown} of ${all}` : all;
    replaceChildren(this.paper,
      h("p", {}, `${said}; results.csv has all of them, with every column.`),
      table("rows on paper", heads, lines));
  }

  fromPaper() {
    replaceChildren(this.paper);
  }
}

// --- a row in full ---

function rowDetail(view, row, columns, close) {
  const { report } = view;
  const link = `${location.href.split("#")[0]}#row=${row.index}&at=table`;
  const group = report.groups.find((one) => one.case_id === row.case_id && one.mode === row.mode);
  return [
    h("p", { class: "buttons" }, copyButton(link, "copy link to this row"),
      h("button", { type: "button", class: "copy", title: "the parts above show this case",
        onclick: () => view.state.set({ case: group.key }) }, "look at this case"),
      h("button", { type: "button", class: "copy close", onclick: close }, "close")),
    h("h3", {}, breakable(row.case_id)),
    h("p", {}, row.variant, ", ", row.mode, ": ", verdictText(row.verdict), row.reason ? `, ${row.reason}` : null),
    h("h4", {}, "To repeat it"),
    row.repro ? h("p", {}, h("code", {}, row.repro), " ", copyButton(row.repro))
      : h("p", { class: "soft" }, "The record has no command."),
    h("h4", {}, "Its steps"),
    stepsInFull(report, row),
    h("h4", {}, "Its columns"),
    columnsInFull(report, row, columns),
  ];
}

function stepsInFull(report, row) {
  // Reasons are said on the dashes that they explain.
  const columns = report.stepColumns.filter((column) => !column.name.endsWith("reason"));
  if (row.steps.length === 0) {
    return h("p", { class: "soft" }, `None is recorded${row.reason ? `: ${row.reason}` : ""}.`);
  }
  const heads = columns.map((column) => {
    const { words, unit, title } = headCell(report, column, report.stepColumns);
    return { text: [words, unit ? h("small", {}, unit) : null], title, class: column.unit ? "n" : null };
  });
  return table("steps of the row", [n("step"), ...heads],
    row.steps.map((step, i) => [n(String(i + 1)),
      ...columns.map((column) => figureCell(report, column, step, report.stepColumns))]));
}

// Every column with its exact value, and what it means.
function columnsInFull(report, row, columns) {
  return table("columns of the row", ["column", "value", "what it is"], columns.map((column) => [
    h("code", {}, column.name.split("_").flatMap((part, i) => (i === 0 ? [part] : ["_", h("wbr"), part]))),
    valueInFull(report, column, row, columns),
    { text: column.description, class: "soft" },
  ]));
}

function valueInFull(report, column, row, columns) {
  const value = row[column.name];
  const { text, title } = figureCell(report, column, row, columns);
  if (isMissing(value)) return { text: title === "nothing to explain" ? NONE : `${NONE} ${title}`, class: "soft" };
  if (typeof value !== "number") return breakable(typeof value === "string" ? value : text);
  const unit = shownUnit(column.unit);
  const short = unit ? `${text} ${unit}` : text;
  const isExact = short === title || text === String(value);
  return [short, isExact ? null : h("small", { class: "soft exact" }, title)];
}

// --- the part ---

let gridShown = null;
let isPrinting = false;
window.addEventListener("beforeprint", () => { isPrinting = true; gridShown?.toPaper(); });
window.addEventListener("afterprint", () => { isPrinting = false; gridShown?.fromPaper(); });

PARTS.push({
  id: "table",
  order: 90,
  title: "All rows",
  about: "Every row that the filters leave, as results.csv has it: sort and group them, choose columns, and open one "
    + "for all that is known of it.",
  // All cases are here: which one the other parts look at changes nothing.
  keeps: ["case", "theme"],
  render(root, view) {
    gridShown = new RowGrid(root, view);
    if (isPrinting) gridShown.toPaper();
  },
});
