// Words that a reader may not know, explained on hover. Columns are explained by the records' own dictionary.
const WORDS = {
  "case": "an op with its shape, dtype, conventions and seed: it decides the inputs to the last bit",
  "variant": "one way to compute an op: naive stores every intermediate, cublas (eigen on the CPU) takes every "
    + "product from the library, cublas_flash all but attention's, fused makes as few passes over memory as it can",
  "row": "a case, a variant and a mode: one line of results.csv",
  "step": "one launch of a plan",
  "compulsory bytes": "each input of the op read once and each output written once: the same for every variant",
  "modelled bytes": "what the variant's steps declare that they read and write, each byte once a step",
  "measured bytes": "bytes that crossed to and from HBM, by the GPU's own counters",
  "ceiling": "the best bandwidth or FLOP rate that anything reached on this device in this run",
  "floor": "the larger of compulsory bytes over the bandwidth ceiling and FLOPs over the rate ceiling: nothing is "
    + "faster",
  "share of floor": "floor / median latency: 100% is as fast as the device allows",
  "arithmetic intensity": "FLOPs for each byte that crosses to or from HBM",
  "cold": "L2 is flushed before each sample",
  "hot": "the same plan ran just before, so that L2 holds what it left",
  "budget": "how far a result may lie from the double-precision reference: what rounding alone costs, times a fixed "
    + "factor",
  "speed-up": "the other variant's latency over this one's, in pairs of samples of one round, with the median's 95% "
    + "interval",
  "noise": "how far medians of one binary lie apart from run to run: within it a difference says nothing. * is "
    + "assumed, since no run has measured it",
  "interval": "where the ratio of the medians lies, by chance within the runs alone, in so many of 100 repetitions",
};

// A word with its explanation.
function word(term, text = term) {
  return h("abbr", { title: WORDS[term] ?? null }, text);
}

function columnHelp(report, name, columns = report.columns) {
  const column = columns.find((candidate) => candidate.name === name);
  if (!column) return null;
  return `${column.name}${column.unit ? `, ${unitText(column.unit)}` : ""}: ${column.description}`;
}
