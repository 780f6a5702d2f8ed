// The registry of model shapes, configs/models.yaml.
#include <cstdlib>

#include "harness/yaml.h"

namespace fusebench {
namespace {

Model read_model(const YamlReader& reader, const YamlEntry& entry) {
  const YamlNode& map = reader.map(entry);
  reader.check_keys(map, {"dim", "hidden", "heads", "kv_heads", "rope_theta", "rope", "eps", "causal", "source"});
  const auto value = [&](std::string_view key) -> const YamlNode& {
    return reader.single(reader.require(map, key, "a model gives every one of its keys"));
  };
  const auto size = [&](std::string_view key) { return reader.integer(value(key), key, 1); };

  Model model;
  model.name = entry.key.text;
  model.dim = size("dim");
  model.hidden = size("hidden");
  model.heads = size("heads");
  model.kv_heads = size("kv_heads");
  model.rope_theta = reader.number(value("rope_theta"), "rope_theta");
  model.rope =
      reader.one_of<Pairing>(value("rope"), "rope", {{"interleaved", Pairing::interleaved}, {"half", Pairing::half}});
  model.eps = reader.number(value("eps"), "eps");
  model.causal = reader.boolean(value("causal"), "causal");
  model.source = reader.text(value("source"), "source");
  return model;
}

}  // namespace

std::filesystem::path configs_folder() {
  const char* folder = std::getenv("FUSEBENCH_CONFIGS");
  const bool named = folder != nullptr && *folder != '\0';
  return named ? std::filesystem::path(folder) : std::filesystem::path(FUSEBENCH_SOURCE_DIR) / "configs";
}

std::vector<Model> load_models() {
  const std::filesystem::path path = configs_folder() / "models.yaml";
  const YamlReader reader(path.string());
  const YamlNode root = reader.parse(read_config_text(path));
  std::vector<Model> models;
  for (const YamlEntry& entry : root.entries) models.push_back(read_model(reader, entry));
  return models;
}

}  // namespace fusebench
