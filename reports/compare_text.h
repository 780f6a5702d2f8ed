// A comparison for people and programs. Each ratio is new over base.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reports/compare.h"

namespace fusebench::reports {

struct TableStyle {
  bool colour = false;
  std::size_t width = 120;  ///< reasons are wrapped to it, figures and names never are
};

/// For a terminal: what was compared, a line a row with regressions first, what changed under it, then the counts.
std::string comparison_table(const Comparison& comparison, const TableStyle& style);
/// The whole structure, one object.
Json comparison_data(const Comparison& comparison);
std::string comparison_json(const Comparison& comparison);
/// The same with the page's `kind`, `title` and first words (`said`), as one self-contained page (reports/html.h).
std::string comparison_page(const Comparison& comparison);
/// For a pull request: regressions and changes open, rows that did not change folded.
std::string comparison_markdown(const Comparison& comparison);

// What the renderings share.
std::string format_ratio(const ComparedRow& row);  ///< "1.031 [1.024, 1.038]"; "-" without
std::string format_noise(const ComparedRow& row);  ///< "1.2%", "2%*" where it was assumed; "-" without
std::string format_change(const Change& change);   ///< "launches 7 -> 5"
std::string format_difference(const Difference& difference);
std::string format_side(const Side& side);  ///< "out/a: quick, 2026-11-29T16:28:30Z, fusebench 0.1.0, 114 rows"
std::string counts_of(const Comparison& comparison);       ///< "114 rows: 2 slower, 110 same, 2 unsure"
std::string regressions_of(const Comparison& comparison);  ///< "1 regression: ..."
std::string row_name(const ComparedRow& row);              ///< "block/.../fused (cold, sustained)"
/// Under a row: why it counts as a regression, why its latency is not judged, a new row's verdict, its changes.
std::vector<std::string> remarks_of(const ComparedRow& row);
/// Warnings of both runs, then the comparison's own notes.
std::vector<std::string> caveats_of(const Comparison& comparison);

}  // namespace fusebench::reports
