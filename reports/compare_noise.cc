#include "reports/compare_noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace fusebench::reports {

namespace {

struct Figure {
  double relative = 0;
  double pairs = 0;
};

Json member(const Json& object, std::string_view key) {
  return object.is_object() && object.contains(key) ? object.at(std::string(key)) : Json();
}

std::optional<Figure> figure_for(const Json& table, double us) {
  const Json classes = member(table, "classes");
  if (!classes.is_array()) return std::nullopt;
  for (const Json& entry : classes) {
    const double from = number_of(entry, "from_us").value_or(0);
    const double to = number_of(entry, "to_us").value_or(std::numeric_limits<double>::infinity());
    const std::optional<double> relative = number_of(entry, "relative");
    if (us < from || us >= to || !relative || !(*relative >= 0)) continue;
    return Figure{*relative, number_of(entry, "pairs").value_or(0)};
  }
  return std::nullopt;
}

std::string why_none(const Json& header) {
  if (member(header, "noise").is_object()) return "its noise table has no class for the duration";
  const std::string reason = text_of(header, "noise_reason");
  return reason.empty() ? "its header has no noise table" : reason;
}

// Collects the figures of both headers, and what is missing.
class Search {
 public:
  void look(const Json& header, const std::string& run, double us) {
    const Json noise = member(header, "noise");
    const std::optional<Figure> restarts = figure_for(noise, us);
    if (restarts) raise(restarts->relative, "restarts of " + run);
    if (const auto same_run = figure_for(member(noise, "a_a"), us)) raise(same_run->relative, "A/A of " + run);
    if (restarts && restarts->pairs >= kFewestPairs) {
      known_ = true;
    } else if (restarts) {
      why_ = fmt::format("{} has only {:.0f} pairs of processes for the duration", run, restarts->pairs);
    } else if (why_.empty()) {
      why_ = fmt::format("{}: {}", run, why_none(header));
    }
  }

  Noise result(double floor) {
    largest_.same_within = known_ ? largest_.relative : std::max(largest_.relative, kAssumedNoise);
    if (known_) return largest_;
    raise(floor, "assumed");
    largest_.assumed = floor;
    largest_.why = why_;
    return largest_;
  }

 private:
  void raise(double relative, const std::string& source) {
    if (relative <= largest_.relative && !largest_.source.empty()) return;
    largest_.relative = relative;
    largest_.source = source;
  }

  Noise largest_;
  bool known_ = false;
  std::string why_;
};

}  // namespace

Noise noise_of(const Json& base_header, const Json& new_header, double base_us, double new_us, bool cpu) {
  Search search;
  for (double us : {base_us, new_us}) {
    search.look(base_header, "base", us);
    search.look(new_header, "new", us);
  }
  return search.result(cpu ? kAssumedNoiseCpu : kAssumedNoise);
}

}  // namespace fusebench::reports
