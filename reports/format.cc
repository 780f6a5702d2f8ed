#include "reports/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fusebench::reports {

namespace {

std::string four_digits(double value) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{:.0f}", value);
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(3 - magnitude, 0, 6));
}

}  // namespace

std::string format_us(double us) { return four_digits(us); }

std::string format_mb(double bytes) { return four_digits(bytes / 1e6); }

std::string format_percent(double part) {
  if (part > 0 && part < 0.01) return "<1%";
  if (part > 9.99) return ">999%";
  // Never rounded to 100% from above: over the budget must look like it.
  return fmt::format("{:.0f}%", part > 1 ? std::ceil(part * 100) : part * 100);
}

std::string format_speedup(const Json& row, const std::string& base) {
  const auto value = number_of(row, "speedup_vs_" + base);
  const auto lo = number_of(row, "speedup_vs_" + base + "_lo");
  const auto hi = number_of(row, "speedup_vs_" + base + "_hi");
  if (!value) return {};
  const int digits = *value < 10 ? 2 : *value < 100 ? 1 : 0;
  if (!lo || !hi) return fmt::format("{:.{}f}x", *value, digits);
  return fmt::format("{:.{}f}x [{:.{}f}, {:.{}f}]", *value, digits, *lo, digits, *hi, digits);
}

std::string speedup_cell(const Json& row, const std::string& base) {
  const std::string text = format_speedup(row, base);
  return text.empty() ? "-" : text;
}

std::string plural(std::size_t n, std::string_view noun) { return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s"); }

std::string_view first_bytes(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

std::string baseline_name(const Records& records) {
  const bool cpu_only =
      !records.rows.empty() && std::all_of(records.rows.begin(), records.rows.end(),
                                           [](const Json& row) { return text_of(row, "backend") == "cpu"; });
  return cpu_only ? "eigen" : "cublas";
}

}  // namespace fusebench::reports
