// Lists of rows, steps and figures: what the parts count, group and pick.

// Lists by key, in the order in which keys are first met. A Map, since names in records may be those of any object's
// members.
function groupBy(list, keyOf) {
  const groups = new Map();
  for (const one of list) {
    const key = keyOf(one);
    const group = groups.get(key);
    if (group) group.push(one);
    else groups.set(key, [one]);
  }
  return groups;
}

function countBy(list, keyOf = (one) => one) {
  const counts = new Map();
  for (const one of list) counts.set(keyOf(one), (counts.get(keyOf(one)) ?? 0) + 1);
  return counts;
}

const distinct = (list, of = (one) => one) => [...new Set(list.map(of))];

// The list without `value`, or with it where it was not there.
const toggled = (list, value) => (list.includes(value) ? list.filter((one) => one !== value) : [...list, value]);

const ratioOf = (a, b) => (isKnown(a) && b > 0 ? a / b : null);

// What is not known adds nothing.
const sumOf = (numbers) => numbers.reduce((total, one) => total + (isKnown(one) ? one : 0), 0);
const smallest = (values) => values.reduce((best, value) => Math.min(best, value), Infinity);
const largest = (values) => values.reduce((best, value) => Math.max(best, value), -Infinity);

function medianOf(values) {
  const sorted = values.filter(isKnown).sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// At most `limit` of a list, spread evenly over it.
function thinned(list, limit) {
  if (list.length <= limit) return list;
  return Array.from({ length: limit }, (_, i) => list[Math.floor((i * list.length) / limit)]);
}
