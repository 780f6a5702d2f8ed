// Figures as text. Four significant digits, as fusebench prints them; a figure that is not known is a dash.
const NONE = "\u2013";

function fourDigits(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.min(Math.max(3 - magnitude, 0), 6));
}

// Units as people read them, where the records spell them otherwise.
const UNITS = { us: "\u00b5s", C: "\u00b0C" };
const unitText = (unit) => UNITS[unit] ?? unit;

const isKnown = (value) => value !== null && value !== undefined && Number.isFinite(value);
const formatMb = (bytes) => (isKnown(bytes) ? fourDigits(bytes / 1e6) : NONE);
const formatPercent = (part) => {
  if (!isKnown(part)) return NONE;
  if (part > 0 && part < 0.01) return "<1%";
  if (part > 9.99) return ">999%";
  // Never rounded to 100% from above: over the budget must look like it.
  return `${part > 1 ? Math.ceil(part * 100) : Math.round(part * 100)}%`;
};
const formatSigned = (value, format) =>
  (isKnown(value) ? `${value < 0 ? "\u2212" : "+"}${format(Math.abs(value))}` : NONE);

function formatTimes(value, lo = null, hi = null) {
  if (!isKnown(value)) return NONE;
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  const text = `${value.toFixed(digits)}x`;
  return isKnown(lo) && isKnown(hi) ? `${text} [${lo.toFixed(digits)}, ${hi.toFixed(digits)}]` : text;
}

// Microseconds and bytes in the unit that suits them.
const TIME_UNITS = [[1e6, "s"], [1e3, "ms"], [1, "\u00b5s"]];
const BYTE_UNITS = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];

function inUnit(value, units, format) {
  if (!isKnown(value)) return NONE;
  const [size, unit] = units.find(([one]) => Math.abs(value) >= one) ?? units.at(-1);
  return `${format(value / size)} ${unit}`;
}

const formatTime = (us) => inUnit(us, TIME_UNITS, fourDigits);
const formatBytes = (bytes) => inUnit(bytes, BYTE_UNITS, Math.abs(bytes) < 1e3 ? String : fourDigits);

// Marks of axes: 3 GB, not 3.000 GB.
const axisTime = (us) => inUnit(us, TIME_UNITS, axisNumber);
const axisBytes = (bytes) => inUnit(bytes, BYTE_UNITS, axisNumber);

function axisNumber(value) {
  if (!isKnown(value)) return NONE;
  const number = Number(value.toPrecision(4));
  if (Math.abs(number) >= 1e6 || (number !== 0 && Math.abs(number) < 1e-3)) {
    return number.toExponential().replace("e+", "e");
  }
  return String(number);
}

// What a damaged record has in a text's place is shown as JSON.
const anyText = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));

function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
