// What the page was given: the records, as objects with the records' own column names.

function readData() {
  return JSON.parse(document.getElementById("records").textContent);
}

// Rows come as arrays in the order of their columns, to keep the page small, and are read where they lie; what is in a row beside
// its columns comes as text. Of ten thousand rows most is never looked at.
function readerOf(names) {
  class Reader {
    constructor(values) {
      this.values = values;
    }
  }
  names.forEach((name, i) => Object.defineProperty(Reader.prototype, name, { get() { return this.values[i]; } }));
  return Reader;
}

function decodeReport(data) {
  const columns = data.columns.map(([name, unit, description, reason]) => ({ name, unit, description, reason }));
  const stepColumns = data.step_columns.map(([name, unit, description, reason]) => ({ name, unit, description, reason }));
  const Step = readerOf([...stepColumns.map((column) => column.name), "reads", "writes"]);
  const Row = rowReader(columns.map((column) => column.name), { Step, Tensor: readerOf(data.tensor_keys), Mutant: readerOf(data.mutant_keys) });
  const rows = data.rows.map((packed, index) => new Row(packed, index));
  return { ...data, columns, stepColumns, rows, groups: groupByCase(rows) };
}

// A row's columns, and what the page makes of them.
function rowReader(names, { Step, Tensor, Mutant }) {
  const caseId = names.indexOf("case_id");
  return class Row extends readerOf(names) {
    constructor(packed, index) {
      super(packed.values);
      this.packed = packed;
      this.index = index;
      this.mode = modeOf(this);
      this.values[caseId] ??= "no case_id";
    }
    get key() { return `${this.case_id} (${this.mode})`; } // of its group
    get label() { return `${this.case_id}/${this.variant}`; }
    get more() { return (this.madeMore ??= JSON.parse(this.packed.more)); }
    get samples_us() { return this.more[0]; }
    get samples_mhz() { return this.more[1]; }
    get steps() { return (this.madeSteps ??= this.more[2].map((values) => new Step(values))); }
    get tensors() { return (this.madeTensors ??= this.more[3].map((values) => new Tensor(values))); }
    get mutants() { return (this.madeMutants ??= this.more[4].map((values) => new Mutant(values))); }
    get measured_bytes() { return isKnown(this.dram_read_bytes) && isKnown(this.dram_write_bytes) ? this.dram_read_bytes + this.dram_write_bytes : null; }
    get error_share() {
      if (this.madeShare === undefined) this.madeShare = errorShare(this);
      return this.madeShare;
    }
    get search() {
      return (this.madeSearch ??= [this.case_id, this.variant, this.mode, this.verdict, this.kernel, this.reason].filter(Boolean).join(" ").toLowerCase());
    }
  };
}

function modeOf(row) {
  return [row.cache, row.graph ? "graph" : null, row.load].filter(Boolean).join(", ");
}

// Worst of rel_l2 and max_abs over their budgets: at most 1 passes.
function errorShare(row) {
  const shares = [["rel_l2", "budget_rel_l2"], ["max_abs", "budget_max_abs"]]
    .filter(([error, budget]) => isKnown(row[error]) && isKnown(row[budget]))
    .map(([error, budget]) => (row[budget] > 0 ? row[error] / row[budget] : row[error] > 0 ? Infinity : 0));
  return shares.length > 0 ? Math.max(...shares) : null;
}

// The variants of one case in one mode, side by side.
function groupByCase(rows) {
  return [...groupBy(rows, (row) => row.key)].map(([key, own]) => {
    const { case_id, mode, op } = own[0];
    return { key, case_id, mode, op, rows: own };
  });
}

const rowOf = (group, variant) => group.rows.find((row) => row.variant === variant) ?? null;

// A figure's reason where it is null, from the column that the dictionary names.
function reasonOf(report, object, name, columns = report.columns) {
  const column = columns.find((candidate) => candidate.name === name);
  return column?.reason ? object[column.reason] ?? null : null;
}
