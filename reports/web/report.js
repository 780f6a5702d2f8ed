// What the page was given: the records, as objects with the records' own column names.

function readData() {
  return JSON.parse(document.getElementById("records").textContent);
}

// Rows come as arrays in the order of their columns, to keep the page small, and are read where they lie; what is in a
// row beside its columns comes as text. Of ten thousand rows most is never looked at. Texts that are needed are there,
// whatever a damaged record lacks.
function readerOf(names, needed = []) {
  const places = needed.map((name) => [names.indexOf(name), `no ${name}`]);
  class Reader {
    constructor(values) {
      this.values = values;
      for (const [at, otherwise] of places) values[at] ??= otherwise;
    }
  }
  names.forEach((name, i) => Object.defineProperty(Reader.prototype, name, { get() { return this.values[i]; } }));
  return Reader;
}

function decodeReport(data) {
  const columnOf = ([name, unit, description, reason]) => ({ name, unit, description, reason });
  const columns = data.columns.map(columnOf);
  const stepColumns = data.step_columns.map(columnOf);
  const Step = stepReader(stepColumns.map((column) => column.name));
  const Row = rowReader(columns.map((column) => column.name),
    { Step, Tensor: readerOf(data.tensor_keys, ["name"]), Mutant: readerOf(data.mutant_keys, ["name"]) });
  const rows = data.rows.map((packed, index) => new Row(packed, index));
  return { ...data, columns, stepColumns, rows, groups: groupByCase(rows) };
}

const together = (read, written) => (isKnown(read) && isKnown(written) ? read + written : null);

// Bytes of rows and steps, reads and writes together. What they moved is as measured, where it was, else as modelled.
const withBytes = (Reader) => class extends Reader {
  get measured_bytes() { return together(this.dram_read_bytes, this.dram_write_bytes); }
  get isMeasured() { return this.measured_bytes !== null; }
  get moved_bytes() { return this.measured_bytes ?? this.bytes_modelled; }
};

const bytesKind = ({ isMeasured }) => (isMeasured ? "measured" : "modelled");

// Bytes of rows beside each other are of one kind: measured where all of them were, else modelled.
function bytesOfOneKind(rows) {
  const isMeasured = rows.length > 0 && rows.every((row) => row.isMeasured);
  return { isMeasured, of: (row) => (isMeasured ? row.measured_bytes : row.bytes_modelled) };
}

function stepReader(names) {
  return class Step extends withBytes(readerOf([...names, "reads", "writes"], ["name"])) {
    get bytes_modelled() { return together(this.bytes_read, this.bytes_written); }
  };
}

// A row's columns, and what the page makes of them.
function rowReader(names, { Step, Tensor, Mutant }) {
  const needed = ["case_id", "op", "dtype", "variant", "verdict"];
  return class Row extends withBytes(readerOf(names, needed)) {
    constructor(packed, index) {
      super(packed.values);
      this.packed = packed;
      this.index = index;
      this.mode = modeOf(this);
    }
    get key() { return `${this.case_id} (${this.mode})`; } // of its group
    get label() { return `${this.case_id}/${this.variant}`; }
    get more() { return (this.madeMore ??= JSON.parse(this.packed.more)); }
    get samples_us() { return this.more[0]; }
    get samples_mhz() { return this.more[1]; }
    get steps() { return (this.madeSteps ??= this.more[2].map((values) => new Step(values))); }
    get tensors() { return (this.madeTensors ??= this.more[3].map((values) => new Tensor(values))); }
    get mutants() { return (this.madeMutants ??= this.more[4].map((values) => new Mutant(values))); }
    get error_share() {
      if (this.madeShare === undefined) {
        const shares = ERROR_MEASURES.map((name) => errorShare(this, name)).filter((share) => share !== null);
        this.madeShare = shares.length > 0 ? Math.max(...shares) : null;
      }
      return this.madeShare;
    }
    get search() {
      return (this.madeSearch ??= [this.case_id, this.variant, this.mode, this.verdict, this.kernel, this.reason]
        .filter(Boolean).join(" ").toLowerCase());
    }
  };
}

function modeOf(row) {
  return [row.cache, row.graph ? "graph" : null, row.load].filter(Boolean).join(", ");
}

const ERROR_MEASURES = ["rel_l2", "max_abs"];

// An error as a part of its budget: at most 1 passes. Infinity where nothing may be wrong and something is.
function errorShare(row, name) {
  const [error, budget] = [row[name], row[`budget_${name}`]];
  if (!isKnown(error) || !isKnown(budget)) return null;
  return budget > 0 ? error / budget : error > 0 ? Infinity : 0;
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

// A row's own reason stands for those of all its figures.
const whyNot = (report, row, name, otherwise = null) => reasonOf(report, row, name) ?? row.reason ?? otherwise;
const NO_REASON = "no reason is recorded";
