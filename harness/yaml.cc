#include "harness/yaml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <system_error>

namespace fusebench {
namespace {

/// Insertions, deletions, replacements and swaps of neighbours that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({replaced, d[i - 1][j] + 1, d[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

/// 0, or 1 to 9 and more digits: what is read the same way by everybody.
bool is_plain_decimal(std::string_view text) {
  const bool digits =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits && (text.size() == 1 || text[0] != '0');
}

/// Digits with a fraction or an exponent or both: 500000, 0.01, 1e-5.
bool is_plain_number(std::string_view text) {
  const auto take_digits = [&] {
    const std::size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(count);
    return count > 0;
  };
  if (!take_digits()) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!take_digits()) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (!take_digits()) return false;
  }
  return text.empty();
}

}  // namespace

const YamlEntry* YamlNode::find(std::string_view key) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const YamlEntry& entry) { return entry.key.text == key; });
  return found == entries.end() ? nullptr : &*found;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMostBytes = 60;
  std::string line(text.substr(0, kMostBytes));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text.size() > kMostBytes ? line + "..." : line;
}

std::string suggest(std::string_view text, const std::vector<std::string_view>& known) {
  text = text.substr(0, 64);
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(text.size() / 2, 1) + 1;  // half of it may be wrong
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(text, candidate);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  if (!nearest.empty()) return fmt::format("did you mean '{}'?", nearest);
  return fmt::format("known: {}", fmt::join(known, ", "));
}

std::string read_config_text(const std::filesystem::path& path) {
  const auto fail = [&](std::string_view why) {
    return ConfigError(fmt::format("{}: cannot be read: {}; name a YAML file", path.string(), why));
  };
  std::error_code status_error;
  if (std::filesystem::is_directory(path, status_error)) throw fail("it is a folder");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw fail(std::generic_category().message(errno));
  constexpr std::size_t kMost = 16 << 20;
  std::string text(kMost + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) throw fail(std::generic_category().message(errno));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMost) throw fail("it has more than 16 MiB");
  return text;
}

ConfigError YamlReader::error(const YamlNode& at, std::string_view key, std::string_view what) const {
  return ConfigError(fmt::format("{}:{}:{}: {}: {}", file_, at.line, at.column, shown(key), what));
}

void YamlReader::check_keys(const YamlNode& map, const std::vector<std::string_view>& known) const {
  for (const YamlEntry& entry : map.entries) {
    const std::string& key = entry.key.text;
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw error(entry.key, key, "unknown key; " + suggest(key, known));
    }
  }
}

const YamlEntry& YamlReader::require(const YamlNode& map, std::string_view key, std::string_view why) const {
  const YamlEntry* entry = map.find(key);
  if (entry == nullptr) throw error(map, key, fmt::format("is missing; {}", why));
  return *entry;
}

const YamlNode& YamlReader::map(const YamlEntry& entry) const {
  if (entry.value.kind == YamlNode::Kind::null) throw error(entry.key, entry.key.text, "has no value; give it keys");
  if (entry.value.kind != YamlNode::Kind::map) {
    throw error(entry.value, entry.key.text, "is not a map; write 'key: value' lines under it");
  }
  return entry.value;
}

std::vector<const YamlNode*> YamlReader::values(const YamlEntry& entry) const {
  const std::string& key = entry.key.text;
  if (entry.value.kind != YamlNode::Kind::list) return {&single(entry)};
  if (entry.value.items.empty()) throw error(entry.value, key, "is an empty list; give at least one value");
  std::vector<const YamlNode*> values;
  for (const YamlNode& item : entry.value.items) values.push_back(&item);
  return values;
}

const YamlNode& YamlReader::single(const YamlEntry& entry) const {
  if (entry.value.kind == YamlNode::Kind::null) {
    throw error(entry.key, entry.key.text, "has no value; give one or remove the key");
  }
  return entry.value;
}

const std::string& YamlReader::scalar(const YamlNode& node, std::string_view key, std::string_view wanted) const {
  switch (node.kind) {
    case YamlNode::Kind::null:
      throw error(node, key, fmt::format("is null; give {}", wanted));
    case YamlNode::Kind::list:
      throw error(node, key, fmt::format("is a list; give {}", wanted));
    case YamlNode::Kind::map:
      throw error(node, key, fmt::format("is a map; give {}", wanted));
    case YamlNode::Kind::scalar:
      break;
  }
  return node.text;
}

const std::string& YamlReader::plain(const YamlNode& node, std::string_view key, std::string_view wanted) const {
  const std::string& text = scalar(node, key, wanted);
  if (node.quoted) throw error(node, key, fmt::format("'{}' is text, for its quotes; give {}", shown(text), wanted));
  return text;
}

std::int64_t YamlReader::integer(const YamlNode& node, std::string_view key, std::int64_t least,
                                 std::int64_t most) const {
  const std::string wanted = fmt::format("a plain decimal integer of at least {}", least);
  const std::string& text = plain(node, key, wanted);
  const bool negative = text.starts_with('-');
  if (!is_plain_decimal(std::string_view(text).substr(negative ? 1 : 0))) {
    throw error(node, key, fmt::format("'{}' is not a plain decimal integer; give {}", shown(text), wanted));
  }
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool too_small = failure == std::errc() ? value < least : negative;
  if (too_small) throw error(node, key, fmt::format("{} is too small; give at least {}", shown(text), least));
  if (failure != std::errc() || value > most) {
    throw error(node, key, fmt::format("{} is too large; give at most {}", shown(text), most));
  }
  return value;
}

std::uint64_t YamlReader::unsigned_integer(const YamlNode& node, std::string_view key) const {
  constexpr std::string_view kWanted = "a plain decimal integer from 0 to 18446744073709551615";
  const std::string& text = plain(node, key, kWanted);
  if (!is_plain_decimal(text)) {
    throw error(node, key, fmt::format("'{}' is not a plain decimal integer; give {}", shown(text), kWanted));
  }
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc()) throw error(node, key, fmt::format("{} is too large; give {}", shown(text), kWanted));
  return value;
}

double YamlReader::number(const YamlNode& node, std::string_view key) const {
  constexpr std::string_view kWanted = "a finite number above 0, such as 0.01 or 1e-5";
  const std::string& text = plain(node, key, kWanted);
  double value = 0;
  if (is_plain_number(text)) {
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure == std::errc() && std::isfinite(value) && value > 0) return value;
  }
  throw error(node, key, fmt::format("'{}' is out of place; give {}", shown(text), kWanted));
}

bool YamlReader::boolean(const YamlNode& node, std::string_view key) const {
  constexpr std::string_view kWanted = "true or false";
  const std::string& text = plain(node, key, kWanted);
  if (text == "true") return true;
  if (text == "false") return false;
  throw error(node, key, fmt::format("'{}' is not a bool; give {}", shown(text), kWanted));
}

std::string YamlReader::text(const YamlNode& node, std::string_view key) const {
  const std::string& text = scalar(node, key, "text");
  if (text.empty()) throw error(node, key, "is empty; give text");
  return text;
}

ConfigError YamlReader::unknown_value(const YamlNode& node, std::string_view key,
                                      const std::vector<std::string_view>& known) const {
  return error(node, key, fmt::format("'{}' is unknown; {}", shown(node.text), suggest(node.text, known)));
}

}  // namespace fusebench
