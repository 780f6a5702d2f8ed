#include "reports/dictionary.h"

#include <fmt/format.h>

#include <string_view>

#include "reports/columns.h"

namespace fusebench::reports {

namespace {

constexpr std::string_view kOpening = R"md(# Records

Made from `reports/columns.cc`: change it there, then run `FUSEBENCH_WRITE_DOCS=1 test_reports`.

A run's folder holds `results.jsonl`, the single source of everything else in it. Its first line is the header, every
further line is one row, written as it ends. `fusebench report DIR` rebuilds the rest from it:

| file | holds |
| --- | --- |
| `results.csv` | the scalar columns of every row, in the order below |
| `steps.csv` | a line a step: {keys}, `step` (from 1), then the step's columns |
| `report.html` | the page for people |

Every row has every column, in this order. A value that is not known is null (an empty cell in CSV), never 0, and the
column named under "null" says why. Where columns of one group are null for different reasons, the reason names them.

In CSV, text that a spreadsheet would run as a formula (it begins with `=`, `+`, `-`, `@`, a tab or a carriage return)
has an apostrophe before it. Numbers are written with every digit they need, and never changed; what is not known is an empty cell. pandas, R,
DuckDB and spreadsheets read the files without options, numbers as numbers and TRUE and FALSE as such.

## Header

The line that opens `results.jsonl`: `schema` (the version of this format), `run_id`, `name`, `config` and
`config_sha256`, `command`, `started`, and what it ran on: `backend`, `device`, `driver`, `libraries`, `build`,
`ceilings` (the best bandwidth and FLOP rates seen in this run) and `noise`. `warnings` lists what makes figures
doubtful: a busy GPU, a MIG slice. Here too a null has its `*_reason` beside it.

## Row

)md";

constexpr std::string_view kArrays = R"md(
Five arrays follow in `results.jsonl`:

| array | holds |
| --- | --- |
| `samples_us` | every latency sample in the order taken; element i of every variant of a case was taken in the same round |
| `samples_mhz` | the SM clock during each of them, null where it cannot be read |
| `steps` | one object a launch of the plan, with the keys below, and `reads` and `writes`: the bytes that it declares, by tensor |
| `tensors` | what the steps touch: `name`, `storage` (`op`: the op's own; `prepared`: made once from weights; `workspace`: an intermediate), `dtype`, `dims`, `compulsory_read_bytes`, `compulsory_write_bytes` |
| `mutants` | the wrong outputs on which `--prove` tried the check, each with its `name` and `outcome`: rejected, equivalent or let through |

)md";

std::string table_of(std::span<const Column> all) {
  std::string text = "| column | unit | meaning | null |\n| --- | --- | --- | --- |\n";
  for (const Column& column : all) {
    text += fmt::format("| `{}` | {} | {} | {} |\n", column.name, column.unit, column.description,
                        column.reason.empty() ? std::string() : fmt::format("`{}`", column.reason));
  }
  return text;
}

std::string keys() {
  std::string text;
  for (std::string_view key : key_columns()) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", key);
  return text;
}

}  // namespace

std::string data_dictionary() {
  std::string text(kOpening);
  constexpr std::string_view slot = "{keys}";
  text.replace(text.find(slot), slot.size(), keys());
  return text + table_of(columns()) + std::string(kArrays) + table_of(step_columns());
}

}  // namespace fusebench::reports
