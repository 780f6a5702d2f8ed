#include "harness/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "harness/case_keys.h"
#include "harness/yaml.h"
#include "reports/sha256.h"

namespace fusebench {
namespace {

constexpr std::string_view kVariants = "variants";

// --- measure

template <class T, class Read>
std::vector<T> distinct_values(const YamlReader& yaml, const YamlEntry& entry, const Read& read) {
  std::vector<T> distinct;
  for (const YamlNode* node : yaml.values(entry)) {
    const T value = read(*node);
    if (std::find(distinct.begin(), distinct.end(), value) == distinct.end()) distinct.push_back(value);
  }
  return distinct;
}

VerifyRows read_verify(const YamlReader& yaml, const YamlNode& node) {
  if (node.text == "full") return {.full = true, .rows_per_case = 0};
  if (node.text == "sample") return {};
  const bool word = node.kind == YamlNode::Kind::scalar && node.text.find_first_of("0123456789") == std::string::npos;
  if (word) throw yaml.unknown_value(node, "verify", {"sample", "full", "a count of rows"});
  return {.full = false, .rows_per_case = yaml.integer(node, "verify", 1)};
}

Measure read_measure(const YamlReader& yaml, const YamlNode& map) {
  constexpr std::int64_t kMostRounds = 1000000;
  yaml.check_keys(map, {"warmup", "samples", "max_seconds", "ci", "cache", "graph", "load", "traffic", "verify"});
  Measure measure;
  for (const YamlEntry& entry : map.entries) {
    const std::string& key = entry.key.text;
    if (key == "cache") {
      measure.cache = distinct_values<CacheMode>(yaml, entry, [&](const YamlNode& node) {
        return yaml.one_of<CacheMode>(node, key, {{"cold", CacheMode::cold}, {"hot", CacheMode::hot}});
      });
      continue;
    }
    if (key == "graph") {
      measure.graph = distinct_values<bool>(yaml, entry, [&](const YamlNode& node) { return yaml.boolean(node, key); });
      continue;
    }
    const YamlNode& node = yaml.single(entry);
    if (key == "warmup") measure.warmup = static_cast<int>(yaml.integer(node, key, 0, kMostRounds));
    if (key == "samples") measure.samples = static_cast<int>(yaml.integer(node, key, 1, kMostRounds));
    if (key == "max_seconds") measure.max_seconds = yaml.number(node, key);
    if (key == "ci") measure.ci = yaml.number(node, key);
    if (key == "ci" && measure.ci >= 1) throw yaml.error(node, key, node.text + " is too large; give a share below 1");
    if (key == "load") {
      measure.load = yaml.one_of<LoadMode>(node, key, {{"sustained", LoadMode::sustained}, {"burst", LoadMode::burst}});
    }
    if (key == "traffic") measure.traffic = yaml.boolean(node, key);
    if (key == "verify") measure.verify = read_verify(yaml, node);
  }
  return measure;
}

// --- sweep

/// One key's values in an entry's product.
struct Axis {
  enum class Layer : std::uint8_t { defaults, model, entry };  ///< later layers win

  const CaseKey* key;
  Layer layer;
  std::vector<const YamlNode*> values;
};

std::vector<std::string_view> known_keys(bool in_defaults) {
  std::vector<std::string_view> names;
  for (const CaseKey& key : case_keys()) {
    if (key.in_defaults || !in_defaults) names.push_back(key.name);
  }
  names.push_back(kVariants);
  return names;
}

std::vector<std::string> read_variants(const YamlReader& yaml, const YamlEntry& entry) {
  std::vector<std::string> variants;
  for (const YamlNode* node : yaml.values(entry)) {
    const std::string name = yaml.text(*node, kVariants);
    if (std::find(variants.begin(), variants.end(), name) != variants.end()) {
      throw yaml.error(*node, kVariants, fmt::format("'{}' is here twice; name each once", shown(name)));
    }
    variants.push_back(name);
  }
  return variants;
}

/// The axes of `defaults` or of an entry, each value tried once so that a mistake is found even where it is overridden.
std::vector<Axis> read_axes(CaseContext& context, const YamlNode& map, Axis::Layer layer) {
  std::vector<Axis> axes;
  for (const YamlEntry& entry : map.entries) {
    if (entry.key.text == kVariants) continue;
    const CaseKey& key = case_key(entry.key.text);
    const Axis::Layer own = key.name == "model" ? Axis::Layer::model : layer;
    const Axis axis = {.key = &key, .layer = own, .values = context.yaml.values(entry)};
    for (const YamlNode* value : axis.values) {
      Case scratch;
      key.set(context, key.name, *value, scratch);
    }
    axes.push_back(axis);
  }
  return axes;
}

/// Turns the entries of `sweep` into cases.
class SweepReader {
 public:
  SweepReader(const YamlReader& yaml, Backend backend, const YamlNode* defaults)
      : yaml_(yaml), context_(yaml, backend) {
    automatic_.dtype = context_.automatic_dtype;
    if (defaults == nullptr) return;
    for (const std::string_view entry_only : {"op", "model"}) {
      if (const YamlEntry* entry = defaults->find(entry_only)) {
        throw yaml_.error(entry->key, entry_only, "unknown key in defaults; write it in each entry of sweep");
      }
    }
    yaml_.check_keys(*defaults, known_keys(true));
    defaults_ = read_axes(context_, *defaults, Axis::Layer::defaults);
    if (const YamlEntry* variants = defaults->find(kVariants)) default_variants_ = read_variants(yaml_, *variants);
  }

  void add(const YamlNode& entry) {
    yaml_.check_keys(entry, known_keys(false));
    yaml_.require(entry, "op", "name an op or a list of ops");
    const std::vector<Axis> own = read_axes(context_, entry, Axis::Layer::entry);
    check_used(entry, own);
    const YamlEntry* variants = entry.find(kVariants);
    add_product(entry, with_defaults(own), variants ? read_variants(yaml_, *variants) : default_variants_);
  }

  std::vector<SweepCase> take() { return std::move(cases_); }

 private:
  using Places = std::map<std::string_view, const YamlNode*>;  ///< key -> the value that a case took it from

  void check_used(const YamlNode& entry, const std::vector<Axis>& own) {
    std::vector<Op> ops;
    for (const YamlNode* node : find_axis(own, "op")->values) {
      Case c;
      case_key("op").set(context_, "op", *node, c);
      ops.push_back(c.op);
    }
    for (const Axis& axis : own) {
      if (std::any_of(ops.begin(), ops.end(), [&](Op op) { return axis.key->is_used_by(op); })) continue;
      std::vector<std::string_view> names;
      for (const Op op : ops) names.push_back(name_of(op));
      throw yaml_.error(entry.find(axis.key->name)->key, axis.key->name,
                        fmt::format("is not used by {}; remove it or move it to defaults", fmt::join(names, ", ")));
    }
  }

  static const Axis* find_axis(const std::vector<Axis>& axes, std::string_view key) {
    const auto found = std::find_if(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.key->name == key; });
    return found == axes.end() ? nullptr : &*found;
  }

  /// The entry's axes, then those of defaults that neither the entry nor its model overrides.
  std::vector<Axis> with_defaults(std::vector<Axis> axes) const {
    const bool has_model = find_axis(axes, "model") != nullptr;
    const std::size_t own = axes.size();
    for (const Axis& axis : defaults_) {
      const bool overridden = std::any_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(own),
                                          [&](const Axis& other) { return other.key == axis.key; });
      if (!overridden && !(has_model && axis.key->in_model)) axes.push_back(axis);
    }
    return axes;
  }

  /// The first axis varies slowest.
  void add_product(const YamlNode& entry, const std::vector<Axis>& axes, const std::vector<std::string>& variants) {
    check_count(entry, axes);
    std::vector<std::size_t> at(axes.size(), 0);
    for (;;) {
      add_case(entry, axes, at, variants);
      std::size_t axis = axes.size();
      while (axis > 0 && ++at[axis - 1] == axes[axis - 1].values.size()) at[--axis] = 0;
      if (axis == 0) return;
    }
  }

  void check_count(const YamlNode& entry, const std::vector<Axis>& axes) const {
    constexpr std::size_t kMostCases = 100000;
    std::size_t count = 1;
    for (const Axis& axis : axes) {
      count *= axis.values.size();
      if (count > kMostCases) {
        throw yaml_.error(entry, "op", fmt::format("the entry's lists make more than {} cases; split it", kMostCases));
      }
    }
  }

  void add_case(const YamlNode& entry, const std::vector<Axis>& axes, const std::vector<std::size_t>& at,
                const std::vector<std::string>& variants) {
    Case c = automatic_;
    Places places;
    for (const Axis::Layer layer : {Axis::Layer::defaults, Axis::Layer::model, Axis::Layer::entry}) {
      for (std::size_t i = 0; i < axes.size(); ++i) {
        if (axes[i].layer != layer) continue;
        const YamlNode* value = axes[i].values[at[i]];
        axes[i].key->set(context_, axes[i].key->name, *value, c);
        places[axes[i].key->name] = value;
      }
    }
    c = canonical(c);
    check_shape(entry, places, c);
    collect(c, variants);
  }

  /// An error in a case's shape, at the value that gave `key` (the model's name, where that did).
  ConfigError shape_error(const YamlNode& entry, const Places& places, std::string_view key,
                          const std::string& what) const {
    for (const std::string_view source : {key, std::string_view("model"), std::string_view("op")}) {
      const auto place = places.find(source);
      if (place != places.end()) return yaml_.error(*place->second, key, what);
    }
    return yaml_.error(entry, key, what);
  }

  void check_shape(const YamlNode& entry, const Places& places, const Case& c) const {
    const OpUses uses = uses_of(c.op);
    const auto fail = [&](std::string_view key, const std::string& what) {
      throw shape_error(entry, places, key, what);
    };
    const auto need = [&](bool used, std::string_view key, std::int64_t value) {
      if (used && value == 0) fail(key, fmt::format("is missing: {} needs it; give it, or a model", name_of(c.op)));
    };
    need(uses.dim, "dim", c.dim);
    need(uses.hidden, "hidden", c.hidden);
    need(uses.heads, "heads", c.heads);
    if (uses.heads) {
      if (c.dim % c.heads != 0) {
        fail("heads", fmt::format("{} heads do not divide dim {}; give a divisor", c.heads, c.dim));
      }
      if (c.heads % c.kv_heads != 0) {
        fail("kv_heads", fmt::format("{} kv_heads do not divide {} heads; give a divisor", c.kv_heads, c.heads));
      }
    }
    if (uses.rope && c.head_dim() % 2 != 0) {
      fail("heads", fmt::format("head_dim {} (dim {} / heads {}) is odd, and rope rotates pairs; give an even one",
                                c.head_dim(), c.dim, c.heads));
    }
    try {
      spec_of(c);
    } catch (const std::overflow_error& problem) {
      fail(largest_extent(c), fmt::format("the case is too large: {}; give smaller sizes", problem.what()));
    }
  }

  static std::string_view largest_extent(const Case& c) {
    const std::pair<std::int64_t, std::string_view> largest =
        std::max({std::pair<std::int64_t, std::string_view>{c.dim, "dim"},
                  {c.hidden, "hidden"},
                  {c.batch, "batch"},
                  {c.seq, "seq"},
                  {c.past, "past"}});
    return largest.second;
  }

  /// Equal cases collapse; their variants are joined, and no names mean all.
  void collect(const Case& c, const std::vector<std::string>& variants) {
    const auto [known, is_new] = index_.emplace(case_id(c), cases_.size());
    if (is_new) {
      cases_.push_back({.c = c, .variants = variants});
      return;
    }
    std::vector<std::string>& joined = cases_[known->second].variants;
    if (joined.empty() || variants.empty()) {
      joined.clear();
      return;
    }
    for (const std::string& name : variants) {
      if (std::find(joined.begin(), joined.end(), name) == joined.end()) joined.push_back(name);
    }
  }

  const YamlReader& yaml_;
  CaseContext context_;
  Case automatic_;
  std::vector<Axis> defaults_;
  std::vector<std::string> default_variants_;
  std::vector<SweepCase> cases_;
  std::unordered_map<std::string, std::size_t> index_;
};

std::vector<SweepCase> read_sweep(const YamlReader& yaml, const YamlNode& root, Backend backend) {
  const YamlEntry* defaults = root.find("defaults");
  SweepReader sweep(yaml, backend, defaults ? &yaml.map(*defaults) : nullptr);
  const YamlEntry& entries = yaml.require(root, "sweep", "list what to run, each entry with an op");
  if (yaml.single(entries).kind != YamlNode::Kind::list) {
    throw yaml.error(entries.value, "sweep", "is not a list; start each entry with '- op:'");
  }
  for (const YamlNode* entry : yaml.values(entries)) {
    if (entry->kind != YamlNode::Kind::map) {
      throw yaml.error(*entry, "sweep", "an entry is not a map; write '- op: NAME' and more keys under it");
    }
    sweep.add(*entry);
  }
  return sweep.take();
}

// --- top level

/// The name becomes a folder's.
std::string read_name(const YamlReader& yaml, const YamlEntry& entry) {
  constexpr std::size_t kMostLetters = 100;
  const YamlNode& node = yaml.single(entry);
  std::string name = yaml.text(node, "name");
  const auto is_alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const bool safe = is_alphanumeric(name[0]) && name.size() <= kMostLetters &&
                    std::all_of(name.begin(), name.end(),
                                [&](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
  if (!safe) {
    constexpr std::string_view kRight = "letters, digits, '.', '_' and '-', a letter or digit first";
    throw yaml.error(node, "name",
                     fmt::format("'{}' is no safe folder name; use at most {} {}", shown(name), kMostLetters, kRight));
  }
  return name;
}

}  // namespace

Config load_config(const std::filesystem::path& path, Backend backend) {
  const std::string text = read_config_text(path);
  const YamlReader yaml(path.string());
  const YamlNode root = yaml.parse(text);
  yaml.check_keys(root, {"name", "defaults", "measure", "sweep"});

  Config config;
  config.path = path;
  config.sha256 = sha256_hex(text);
  config.name = read_name(yaml, yaml.require(root, "name", "name the run: its output folder is called so"));
  if (const YamlEntry* measure = root.find("measure")) config.measure = read_measure(yaml, yaml.map(*measure));
  config.cases = read_sweep(yaml, root, backend);
  return config;
}

}  // namespace fusebench
