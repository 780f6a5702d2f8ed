#include "harness/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "harness/nvml.h"
#include "harness/statistics.h"
#include "reports/write.h"

namespace fusebench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::array<double, 8> kFromUs = {0, 10, 30, 100, 300, 1000, 3000, 10000};

std::size_t class_of(double us) {
  return static_cast<std::size_t>(std::upper_bound(kFromUs.begin(), kFromUs.end(), us) - kFromUs.begin()) - 1;
}

bool is_usable(double value) { return std::isfinite(value) && value > 0; }

using Difference = std::pair<double, std::string>;  // and the row that it is of

// The smallest that at least 99% do not pass.
Difference bound_of_99_percent(std::vector<Difference> differences) {
  std::sort(differences.begin(), differences.end());
  const std::size_t rank = (99 * differences.size() + 99) / 100;
  return differences[rank - 1];
}

std::string as_name(std::string text) {
  for (char& letter : text) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 && letter != '-' && letter != '.') letter = '-';
  }
  return text;
}

using Medians = std::map<std::string, std::vector<double>>;

Medians medians_by_row(const std::vector<reports::Records>& runs) {
  Medians medians;
  for (const reports::Records& run : runs) {
    for (const reports::Json& row : run.rows) {
      const std::optional<double> us = reports::latency_us_of(row);
      if (reports::text_of(row, "verdict") != "pass" || !us || !is_usable(*us)) continue;
      medians[fmt::format("{}/{}, {}", reports::text_of(row, "case_id"), reports::text_of(row, "variant"),
                          reports::mode_of(row))]
          .push_back(*us);
    }
  }
  return medians;
}

std::vector<NoisePair> pairs_of(const Medians& medians) {
  std::vector<NoisePair> pairs;
  for (const auto& [row, us] : medians) {
    const double duration_us = median(us);
    for (std::size_t i = 0; i < us.size(); ++i) {
      for (std::size_t j = i + 1; j < us.size(); ++j) {
        pairs.push_back({.duration_us = duration_us, .ratio = us[i] / us[j], .of = row});
      }
    }
  }
  return pairs;
}

NoiseTable from_json(const Json& json) {
  NoiseTable table;
  table.restarts = json.at("restarts").get<int>();
  table.learned = json.at("learned").get<std::string>();
  table.device_uuid = json.at("device_uuid").get<std::string>();
  if (!json.at("driver").is_null()) table.driver = json.at("driver").get<std::string>();
  const auto figure = [](const Json& value) {
    return value.is_null() ? std::nullopt : std::optional<double>(value.get<double>());
  };
  for (const Json& entry : json.at("classes")) {
    table.classes.push_back({.from_us = entry.at("from_us").get<double>(),
                             .to_us = figure(entry.at("to_us")),
                             .relative = figure(entry.at("relative")),
                             .pairs = entry.at("pairs").get<std::size_t>(),
                             .of = reports::text_of(entry, "of")});
  }
  return table;
}

constexpr const char* kHowToLearn = "`fusebench doctor --noise` learns one";

}  // namespace

std::vector<NoiseClass> noise_classes(const std::vector<NoisePair>& pairs) {
  std::array<std::vector<Difference>, kFromUs.size()> differences;
  for (const NoisePair& pair : pairs) {
    if (!is_usable(pair.ratio) || !std::isfinite(pair.duration_us) || pair.duration_us < 0) continue;
    differences[class_of(pair.duration_us)].emplace_back(std::max(pair.ratio, 1 / pair.ratio) - 1, pair.of);
  }
  std::vector<NoiseClass> classes;
  for (std::size_t i = 0; i < kFromUs.size(); ++i) {
    NoiseClass one{.from_us = kFromUs[i], .to_us = std::nullopt, .relative = std::nullopt, .of = {}};
    if (i + 1 < kFromUs.size()) one.to_us = kFromUs[i + 1];
    one.pairs = differences[i].size();
    if (one.pairs > 0) std::tie(one.relative, one.of) = bound_of_99_percent(std::move(differences[i]));
    classes.push_back(one);
  }
  return classes;
}

NoiseTable learn_noise(const std::vector<reports::Records>& runs, std::string learned, std::string driver) {
  NoiseTable table{.restarts = static_cast<int>(runs.size()), .learned = std::move(learned), .device_uuid = {}};
  table.driver = std::move(driver);
  for (const reports::Records& run : runs) {
    const std::string key = noise_key(run.header);
    if (!table.device_uuid.empty() && key != table.device_uuid) {
      throw std::runtime_error(fmt::format("the runs are of different devices: {} and {}", table.device_uuid, key));
    }
    table.device_uuid = key;
  }
  const std::vector<NoisePair> pairs = pairs_of(medians_by_row(runs));
  if (pairs.empty()) throw std::runtime_error("no row passed in two of the runs: there is nothing to compare");
  table.classes = noise_classes(pairs);
  return table;
}

Json to_json(const std::vector<NoiseClass>& classes) {
  const auto figure = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  Json list = Json::array();
  for (const NoiseClass& one : classes) {
    list.push_back({{"from_us", one.from_us},
                    {"to_us", figure(one.to_us)},
                    {"relative", figure(one.relative)},
                    {"pairs", one.pairs},
                    {"of", one.of.empty() ? Json() : Json(one.of)}});
  }
  return {{"classes", list}};
}

Json to_json(const NoiseTable& table) {
  return {{"restarts", table.restarts},
          {"learned", table.learned},
          {"device_uuid", table.device_uuid},
          {"driver", table.driver.empty() ? Json() : Json(table.driver)},
          {"classes", to_json(table.classes)["classes"]}};
}

std::string noise_key(const DeviceFacts& facts) {
  return facts.uuid.empty() ? "cpu-" + as_name(facts.name) : as_name(facts.uuid);
}

std::string noise_key(const Json& header) {
  const Json device = header.is_object() ? header.value("device", Json::object()) : Json::object();
  return noise_key(DeviceFacts{.name = reports::text_of(device, "name"), .uuid = reports::text_of(device, "uuid")});
}

std::string noise_driver(const std::string& uuid, const std::string& cuda_driver) {
  if (uuid.empty()) return {};
  return Nvml(uuid).driver().value.value_or(cuda_driver);
}

fs::path noise_file(const std::string& key) {
  const std::string name = "noise-" + key + ".json";
  const char* folder = std::getenv("FUSEBENCH_NOISE");
  if (folder != nullptr && *folder != '\0') return fs::path(folder) / name;
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr ? home : ".") / ".cache/fusebench" / name;
}

void write_noise(const fs::path& file, const NoiseTable& table) {
  std::error_code status;
  fs::create_directories(file.parent_path(), status);
  try {
    reports::write_atomically(file, to_json(table).dump(2) + "\n");
  } catch (const std::exception& failure) {
    throw std::runtime_error(fmt::format("{}; FUSEBENCH_NOISE names another folder", failure.what()));
  }
}

Known<NoiseTable> read_noise(const fs::path& file, const std::string& driver) {
  std::ifstream in(file);
  if (!in) return Known<NoiseTable>::unknown(fmt::format("no noise table for this device; {}", kHowToLearn));
  NoiseTable table;
  try {
    table = from_json(Json::parse(in));
  } catch (const std::exception&) {
    return Known<NoiseTable>::unknown(fmt::format("{} is not a noise table; {}", file.string(), kHowToLearn));
  }
  if (table.driver != driver) {
    return Known<NoiseTable>::unknown(fmt::format("the noise table was learned under driver {}, and this is {}; {}",
                                                  table.driver.empty() ? "none" : table.driver,
                                                  driver.empty() ? "none" : driver, kHowToLearn));
  }
  return table;
}

Known<NoiseTable> noise_of(const DeviceFacts& facts) {
  return read_noise(noise_file(noise_key(facts)), noise_driver(facts.uuid, facts.driver));
}

}  // namespace fusebench
