// What the page was given: the records, as objects with the records' own column names.

function readData() {
  return JSON.parse(document.getElementById("records").textContent);
}

// Rows come as arrays in the order of `columns`, to keep the page small.
function decodeReport(data) {
  const columns = data.columns.map(([name, unit, description, reason]) => ({ name, unit, description, reason }));
  const stepColumns = data.step_columns.map(([name, unit, description, reason]) => ({ name, unit, description, reason }));
  const object = (names, values) => {
    const made = {};
    for (let i = 0; i < names.length; ++i) made[names[i]] = values[i];
    return made;
  };
  const names = columns.map((column) => column.name);
  const stepNames = [...stepColumns.map((column) => column.name), "reads", "writes"];
  const rows = data.rows.map((packed, index) => {
    const row = object(names, packed.values);
    row.index = index;
    row.mode = modeOf(row);
    row.label = `${row.case_id}/${row.variant}`;
    row.samples_us = packed.samples_us;
    row.samples_mhz = packed.samples_mhz;
    row.steps = packed.steps.map((step) => object(stepNames, step));
    row.tensors = packed.tensors;
    row.mutants = packed.mutants;
    row.measured_bytes = isKnown(row.dram_read_bytes) && isKnown(row.dram_write_bytes) ? row.dram_read_bytes + row.dram_write_bytes : null;
    row.error_share = errorShare(row);
    row.search = [row.case_id, row.variant, row.mode, row.verdict, row.kernel, row.reason].filter(Boolean).join(" ").toLowerCase();
    return row;
  });
  return { ...data, columns, stepColumns, rows, groups: groupByCase(rows) };
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
  const groups = new Map();
  for (const row of rows) {
    const key = `${row.case_id} (${row.mode})`;
    if (!groups.has(key)) groups.set(key, { key, case_id: row.case_id, mode: row.mode, op: row.op, rows: [] });
    groups.get(key).rows.push(row);
  }
  return [...groups.values()];
}

const rowOf = (group, variant) => group.rows.find((row) => row.variant === variant) ?? null;

// A figure's reason where it is null, from the column that the dictionary names.
function reasonOf(report, object, name, columns = report.columns) {
  const column = columns.find((candidate) => candidate.name === name);
  return column?.reason ? object[column.reason] ?? null : null;
}
