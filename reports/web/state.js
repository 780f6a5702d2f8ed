// What the reader chose. It is kept in the address, so that a link shows what its sender saw.
const FACETS = ["op", "dtype", "variant", "verdict", "mode"];
const OTHER_LISTS = ["traffic_without", "except"];

class State {
  constructor(facets = FACETS) {
    this.facets = facets;
    this.lists = [...facets, ...OTHER_LISTS];
    this.listeners = [];
    this.values = this.read();
    window.addEventListener("hashchange", () => {
      this.values = this.read();
      this.tell();
    });
  }
  // #traffic is a plain link to a part; #q=mlp&variant=fused are choices, `at` among them is the part.
  read() {
    const hash = location.hash.slice(1);
    const values = Object.assign(Object.create(null), { at: hash.includes("=") ? "" : hash });
    for (const list of this.lists) values[list] = [];
    if (!hash.includes("=")) return values;
    for (const [key, value] of new URLSearchParams(hash)) {
      if (this.lists.includes(key)) values[key].push(value);
      else values[key] = value;
    }
    return values;
  }
  get(key) {
    return this.values[key] ?? "";
  }
  set(changes) {
    this.keep(changes);
    this.tell(Object.keys(changes));
  }
  // What one part has drawn itself: the address follows, and nothing is drawn anew.
  keep(changes) {
    Object.assign(this.values, changes);
    history.replaceState(null, "", this.address());
  }
  address() {
    const parameters = new URLSearchParams();
    for (const [key, value] of Object.entries(this.values)) {
      if (Array.isArray(value)) value.forEach((one) => parameters.append(key, one));
      else if (value !== "" && value !== null && value !== undefined) parameters.set(key, value);
    }
    const text = parameters.toString();
    return text === "" ? location.pathname + location.search : `#${text}`;
  }
  // Listeners hear which keys changed; all of them when the address did.
  listen(listener) {
    this.listeners.push(listener);
  }
  tell(keys = null) {
    for (const listener of this.listeners) listener(keys);
  }
}

function filteredRows(report, state) {
  const words = state.get("q").toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = state.facets.map((facet) => [facet, new Set(state.get(facet))])
    .filter(([, values]) => values.size > 0);
  return report.rows.filter((row) =>
    chosen.every(([facet, values]) => values.has(String(row[facet])))
      && words.every((one) => row.search.includes(one)));
}
