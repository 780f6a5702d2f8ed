// A YAML sweep: what to run and how to measure it. Every mistake is found before anything runs.
#pragma once

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/op.h"
#include "harness/oracle.h"

namespace fusebench {

/// One line: "file:line:column: key: what is wrong; what would be right". Exit code 2.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class CacheMode : std::uint8_t { cold, hot };
enum class LoadMode : std::uint8_t { sustained, burst };

constexpr std::string_view name_of(CacheMode mode) { return mode == CacheMode::cold ? "cold" : "hot"; }
constexpr std::string_view name_of(LoadMode mode) { return mode == LoadMode::sustained ? "sustained" : "burst"; }

struct Measure {
  int warmup = 10;
  int samples = 50;
  double max_seconds = 5;  ///< a row; at least 3 samples are taken all the same
  double ci = 0.01;        ///< wanted half-width of the median's 95% interval, relative
  std::vector<CacheMode> cache = {CacheMode::cold};
  std::vector<bool> graph = {false};
  LoadMode load = LoadMode::sustained;
  bool traffic = true;
  VerifyRows verify;
};

struct SweepCase {
  Case c;                             ///< canonical
  std::vector<std::string> variants;  ///< empty: all that the backend has
};

struct Config {
  std::string name;
  std::vector<SweepCase> cases;  ///< in order of appearance, equal cases collapsed
  Measure measure;
  std::filesystem::path path;
  std::string sha256;  ///< of the file's bytes
};

/// `dtype: auto` becomes fp16 on CUDA and fp32 on the CPU. Throws ConfigError.
Config load_config(const std::filesystem::path& path, Backend backend);

struct Model {
  std::string name;
  std::int64_t dim = 0, hidden = 0, heads = 0, kv_heads = 0;
  double rope_theta = 500000, eps = 1e-5;
  Pairing rope = Pairing::interleaved;
  bool causal = false;
  std::string source;  ///< where the figures are published
};
/// The folder that FUSEBENCH_CONFIGS names, otherwise configs/ of the source tree that the binary was built from.
std::filesystem::path configs_folder();
/// models.yaml in it.
std::vector<Model> load_models();

}  // namespace fusebench
