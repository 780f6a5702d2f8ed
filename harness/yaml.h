// The part of YAML that configurations use: one document of maps, lists and scalars. Everything that would let a file
// say one thing and mean another (repeated keys, aliases, merge keys, tags, several documents) is an error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/config.h"

namespace fusebench {

struct YamlEntry;

struct YamlNode {
  enum class Kind : std::uint8_t { null, scalar, list, map };

  Kind kind = Kind::null;
  int line = 1;  ///< from 1
  int column = 1;
  std::string text;  ///< of a scalar
  bool quoted = false;
  std::vector<YamlNode> items;     ///< of a list
  std::vector<YamlEntry> entries;  ///< of a map, in the file's order

  const YamlEntry* find(std::string_view key) const;
};

struct YamlEntry {
  YamlNode key;
  YamlNode value;
};

/// A file's text as messages show it: one line, cut where it is long.
std::string shown(std::string_view text);

/// What is nearest to `text`: "did you mean 'batch'?", or "known: a, b, c" where nothing is near.
std::string suggest(std::string_view text, const std::vector<std::string_view>& known);

/// The bytes of a file of at most 16 MiB. Throws ConfigError "path: why".
std::string read_config_text(const std::filesystem::path& path);

/// Reads a file's nodes as values, and words every mistake as "file:line:column: key: what is wrong; what would be
/// right". `key` is the key that the node belongs to.
class YamlReader {
 public:
  explicit YamlReader(std::string file) : file_(std::move(file)) {}

  /// The document's root, which is a map. Throws ConfigError.
  YamlNode parse(std::string_view text) const;

  ConfigError error(const YamlNode& at, std::string_view key, std::string_view what) const;

  /// Throws at the first key that is not known.
  void check_keys(const YamlNode& map, const std::vector<std::string_view>& known) const;
  const YamlEntry& require(const YamlNode& map, std::string_view key, std::string_view why) const;

  const YamlNode& map(const YamlEntry& entry) const;
  /// A list's items, or the value alone. Throws at an empty list.
  std::vector<const YamlNode*> values(const YamlEntry& entry) const;
  const YamlNode& single(const YamlEntry& entry) const;  ///< throws at a list

  // A scalar's value.
  std::int64_t integer(const YamlNode& node, std::string_view key, std::int64_t least,
                       std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  std::uint64_t unsigned_integer(const YamlNode& node, std::string_view key) const;
  double number(const YamlNode& node, std::string_view key) const;  ///< finite and above 0
  bool boolean(const YamlNode& node, std::string_view key) const;
  std::string text(const YamlNode& node, std::string_view key) const;  ///< not empty

  template <class T>
  T one_of(const YamlNode& node, std::string_view key, const std::vector<std::pair<std::string_view, T>>& known) const {
    const std::string chosen = text(node, key);
    std::vector<std::string_view> names;
    for (const auto& [name, value] : known) {
      if (name == chosen) return value;
      names.push_back(name);
    }
    throw unknown_value(node, key, names);
  }

  ConfigError unknown_value(const YamlNode& node, std::string_view key,
                            const std::vector<std::string_view>& known) const;

 private:
  const std::string& scalar(const YamlNode& node, std::string_view key, std::string_view wanted) const;
  const std::string& plain(const YamlNode& node, std::string_view key, std::string_view wanted) const;

  std::string file_;
};

}  // namespace fusebench
