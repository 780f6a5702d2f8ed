// The page's frame: what is said first, the filters, and the parts, each drawn when it comes into view.

// { id, title, about, keeps?, withoutRows?, isAlways?, render(root, view) }. `view` has { report, state, rows, open }
// and what the page's look() adds: rows are those that the filters leave, open(row) shows one in its table.
class Page {
  constructor(report, { facets, parts, table, search, none }) {
    this.report = report;
    this.state = new State(facets);
    this.parts = parts;
    this.table = table;
    this.none = none;
    this.filters = new Filters(report.rows, this.state, search);
    this.sections = new Map();
    applyTheme(this.state.get("theme"));
    replaceChildren(document.getElementById("page"), this.head(), this.main());
    this.observer = new IntersectionObserver((entries) => this.onSeen(entries), { rootMargin: "400px" });
    for (const { part, section } of this.sections.values()) if (!part.isAlways) this.observer.observe(section);
    this.state.listen((keys) => this.onChange(keys));
    this.onChange([]);
    this.goTo(this.place());
    // A part that was gone to is held in its place until the reader moves.
    const letGo = () => { this.held = null; };
    for (const move of ["wheel", "touchmove", "pointerdown", "keydown"]) {
      document.addEventListener(move, letGo, { capture: true, passive: true });
    }
    window.addEventListener("beforeprint", () => this.toPaper());
    window.addEventListener("afterprint", () => this.toScreen());
  }

  head() {
    return h("header", {},
      h("h1", {}, this.report.title),
      h("div", { class: "right" }, themeButton(this.state)),
      this.said(),
      h("nav", { "aria-label": "parts" }, this.parts.map(({ id, title }) => actionLink(`#${id}`, null, title, () => {
        this.state.keep({ at: id });
        this.goTo(id);
      }))));
  }

  main() {
    const main = h("main", {}, this.report.rows.length > 0 ? this.filters.form : null);
    for (const part of this.parts) {
      const body = h("div", { class: "body" });
      const section = h("section", { id: part.id, "aria-label": part.title },
        h("h2", { tabindex: "-1" }, part.title), h("p", { class: "soft" }, part.about), body);
      this.sections.set(part.id, { part, section, body, isSeen: part.isAlways ?? false, isStale: true });
      main.append(section);
    }
    return main;
  }

  // --- what the filters leave ---

  update() {
    const rows = filteredRows(this.report, this.state);
    const open = (row) => this.openRow(row);
    this.view = { report: this.report, state: this.state, rows, open, ...this.look(rows) };
    this.filters.update(rows.length);
  }

  onChange(keys) {
    if (keys === null || keys.includes("theme")) applyTheme(this.state.get("theme"));
    const focused = focusPath(document.activeElement);
    this.update();
    for (const entry of this.sections.values()) {
      // A part that only keeps something of its own in the address has drawn it already.
      if (keys?.length > 0 && keys.every((key) => entry.part.keeps?.includes(key))) continue;
      entry.isStale = true;
      if (entry.isSeen) this.draw(entry);
    }
    refocus(focused);
    if (keys === null) this.goTo(this.place());
  }

  onSeen(entries) {
    for (const { target, isIntersecting } of entries) {
      const entry = this.sections.get(target.id);
      entry.isSeen = isIntersecting;
      if (isIntersecting) this.draw(entry);
    }
    // What is drawn above the part that was gone to must not push it away.
    if (this.held) this.show(this.held);
  }

  draw(entry) {
    if (!entry.isStale) return;
    entry.isStale = false;
    const { part, body } = entry;
    // The page keeps its length meanwhile, so that it does not scroll.
    body.style.minHeight = `${body.offsetHeight}px`;
    disposeCharts(body);
    // A part that fails says so, and the others stand.
    try {
      replaceChildren(body);
      if (this.view.rows.length > 0 || part.withoutRows) part.render(body, this.view);
      else body.append(h("p", { class: "note" },
        this.report.rows.length === 0 ? this.none : "No row is left by the filters."));
    } catch (error) {
      console.error(error);
      body.append(h("p", { class: "warning" }, `This part could not be drawn: ${error.message}`));
    }
    body.style.minHeight = "";
  }

  // --- paper ---

  // Paper is white, shows all parts, seen or not, and is narrower than a screen: what fits there is decided anew.
  toPaper() {
    applyTheme("light");
    document.documentElement.classList.add("paper");
    this.redrawAll();
    flushCharts();
  }

  toScreen() {
    applyTheme(this.state.get("theme"));
    document.documentElement.classList.remove("paper");
    this.redrawAll();
  }

  redrawAll() {
    for (const entry of this.sections.values()) this.redraw(entry);
  }

  // What a reader has opened or closed stays so.
  redraw(entry) {
    const folds = () => [...entry.body.querySelectorAll("details")];
    const open = entry.isStale ? [] : folds().map((one) => one.open);
    entry.isStale = true;
    this.draw(entry);
    folds().forEach((one, i) => { one.open = open[i] ?? one.open; });
  }

  // --- getting about ---

  // A link that names a row leads to the table.
  place() {
    return this.state.get("at") || (this.state.get("row") === "" ? "" : this.table);
  }

  goTo(id) {
    const entry = this.sections.get(id);
    if (!entry) return;
    // Parts above grow when they are drawn: first they, then the way to this one.
    for (const above of this.sections.values()) {
      this.draw(above);
      if (above === entry) break;
    }
    // Below the filters, which stay on top and take more lines on a narrow screen.
    document.documentElement.style.setProperty("--bar", `${this.filters.form.offsetHeight}px`);
    this.held = entry.section;
    this.show(entry.section);
    entry.section.querySelector("h2").focus({ preventScroll: true });
  }

  show(section) {
    section.scrollIntoView();
  }

  // Shows a row where it stands in the table.
  openRow(row) {
    this.state.set({ row: String(row.index), case: row.key, at: this.table });
    this.goTo(this.table);
  }
}

// The page of a run. Its parts see the rows in groups, too, and the group that is looked at, which may be null.
const PARTS = []; // parts/*.js add theirs, each with the `order` in which it stands

class RunPage extends Page {
  constructor(report) {
    super(report, { facets: FACETS, parts: PARTS.sort((a, b) => a.order - b.order), table: "table",
      search: "search cases, variants, kernels   /", none: "The run has no rows." });
  }

  said() {
    return [countsOf(this.report),
      this.report.warnings.map((text) => h("p", { class: "warning" }, `Warning: ${text}`))];
  }

  look(rows) {
    const groups = rows.length === this.report.rows.length ? this.report.groups : groupByCase(rows);
    const selected = groups.find((group) => group.key === this.state.get("case")) ?? mostTelling(groups);
    return { groups, selected };
  }
}

function themeButton(state) {
  const next = new Map([["", "dark"], ["dark", "light"], ["light", ""]]);
  const button = h("button", { type: "button", id: "theme", title: "colours: the system's, dark or light" });
  const tell = () => {
    const theme = state.get("theme");
    button.textContent = `colours: ${theme !== "" && next.has(theme) ? theme : "system"}`;
  };
  button.addEventListener("click", () => {
    state.set({ theme: next.get(state.get("theme")) ?? "" });
    tell();
  });
  state.listen(tell);
  tell();
  return button;
}

// The search and the facets above the parts. What is chosen is the state's.
class Filters {
  constructor(rows, state, placeholder) {
    this.rows = rows;
    this.state = state;
    this.search = h("input", { type: "search", id: "search", placeholder, "aria-label": "search",
      oninput: () => state.set({ q: this.search.value, row: "" }) });
    this.facets = h("div", { class: "facets" });
    this.shown = h("span", { class: "soft", role: "status", "aria-live": "polite" });
    const all = () => state.set({ q: "", row: "", ...Object.fromEntries(state.facets.map((facet) => [facet, []])) });
    const reset = h("button", { type: "button", id: "reset", onclick: all }, "show all");
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey
        || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName)) {
        return;
      }
      event.preventDefault();
      this.search.focus();
    });
    this.form = h("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
      this.search, this.facets, this.shown, reset);
  }

  // `count` rows are left.
  update(count) {
    if (this.search.value !== this.state.get("q")) this.search.value = this.state.get("q");
    replaceChildren(this.facets, this.state.facets.map((facet) => facetButtons(facet, this.rows, this.state)));
    const all = plural(this.rows.length, "row");
    this.shown.textContent = count === this.rows.length ? all : `${count} of ${all}`;
  }
}

// Values stand in the order of their first rows; these in one of their own.
const FACET_ORDERS = { latency: ["slower", "faster", "same", "unsure", "new", "gone"], changed: ["yes", "no"] };

// One button for each value, where there is more than one.
function facetButtons(facet, rows, state) {
  const counts = countBy(rows, (row) => String(row[facet]));
  if (counts.size < 2) return null;
  const order = FACET_ORDERS[facet];
  const chosen = state.get(facet);
  const toggle = (value) => state.set({ [facet]: toggled(chosen, value), row: "" });
  const sorted = order ? [...counts].sort(([a], [b]) => order.indexOf(a) - order.indexOf(b)) : [...counts];
  const choices = sorted.map(([value, count]) => [value, value, plural(count, "row")]);
  return buttonGroup(facet, choices, { "data-facet": facet, isPressed: (value) => chosen.includes(value),
    press: toggle });
}

function applyTheme(theme) {
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function countsOf(report) {
  const order = ["pass", "fail", "no_power", "unsupported", "error", "crashed", "timeout"];
  const rank = (verdict) => (order.includes(verdict) ? order.indexOf(verdict) : order.length);
  const sorted = [...countBy(report.rows, (row) => row.verdict)].sort(([a], [b]) => rank(a) - rank(b));
  return h("p", { id: "counts" }, plural(report.rows.length, "row"),
    sorted.map(([verdict, count], i) => [i === 0 ? ": " : ", ", verdictText(verdict, `${count} ${verdict}`)]));
}

function verdictText(verdict, text = verdict) {
  const css = verdict === "pass" ? "pass" : verdict === "unsupported" ? "soft" : "fail";
  return h("span", { class: css }, text);
}

// A block says more than an op, three variants more than one, and what takes longest weighs most.
function mostTelling(groups) {
  const worth = (group) => {
    const passed = group.rows.filter((row) => row.verdict === "pass");
    return [group.op === "block" ? 1 : 0, passed.length, Math.max(0, ...passed.map((row) => row.median_us ?? 0))];
  };
  const isMore = (a, b) => { const at = a.findIndex((value, i) => value !== b[i]); return at >= 0 && a[at] > b[at]; };
  let best = null;
  for (const group of groups) {
    const own = worth(group);
    if (best === null || isMore(own, best.worth)) best = { group, worth: own };
  }
  return best?.group ?? null;
}

// Choosing one of many. Of very many only its neighbours are offered: the search above finds the others.
const MOST_CHOICES = 200;
function chooser(label, all, chosen, { textOf, choose, before = null, after = null }) {
  const first = Math.max(0, Math.min(all.indexOf(chosen) - MOST_CHOICES / 2, all.length - MOST_CHOICES));
  const offered = all.slice(first, first + MOST_CHOICES);
  const onchange = (event) => choose(offered[event.target.selectedIndex]);
  const select = h("select", { "aria-label": label, class: "case", onchange },
    offered.map((one) => h("option", { selected: one === chosen }, textOf(one))));
  const others = all.length - offered.length;
  return h("p", { class: "chooser" }, before, select, after,
    others > 0 ? h("span", { class: "soft" }, `${others} more: search for them`) : null);
}

// The case that a part looks at, with those before and after it.
function caseChooser({ state, groups, selected }) {
  const choose = (group) => state.set({ case: group.key });
  const step = (by, text, label) => {
    const next = groups[groups.indexOf(selected) + by];
    return h("button", { type: "button", "aria-label": label, disabled: next === undefined,
      onclick: () => choose(next) }, text);
  };
  return chooser("case", groups, selected, { textOf: (group) => group.key, choose,
    before: step(-1, "\u2190", "previous case"), after: step(1, "\u2192", "next case") });
}

// Parts are drawn anew when something is chosen in them: the same control has the focus again.
function focusPath(element) {
  const section = element?.closest?.("section[id], form");
  if (!section) return null;
  const same = [...section.querySelectorAll("button, select, input, [tabindex]")];
  return { section: section.id ? `#${section.id}` : "form", at: same.indexOf(element), tag: element.tagName,
    text: element.textContent };
}

function refocus(path) {
  if (path === null || document.activeElement !== document.body) return;
  const all = [...(document.querySelector(path.section)?.querySelectorAll("button, select, input, [tabindex]") ?? [])];
  const isNamed = (one) => one.tagName === path.tag && one.textContent === path.text;
  const same = all[path.at]?.tagName === path.tag ? all[path.at] : all.find(isNamed);
  same?.focus({ preventScroll: true });
}
