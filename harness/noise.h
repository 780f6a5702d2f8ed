// How far the medians of one row lie apart for no reason at all: learned from runs of the same sweep in fresh
// processes, by classes of duration, and kept for the device that it was learned on.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/device.h"
#include "harness/row.h"
#include "reports/records.h"

namespace fusebench {

/// Two latencies of the same thing: their ratio, either way round, and about how long it takes.
struct NoisePair {
  double duration_us = 0;
  double ratio = 1;
  std::string of = {};  ///< the row
};

struct NoiseClass {
  double from_us = 0;
  std::optional<double> to_us;     ///< none: the last class has no end
  std::optional<double> relative;  ///< larger over smaller, less 1; none where there are no pairs
  std::size_t pairs = 0;
  std::string of;  ///< the row whose pair `relative` is, for readers
};

/// One class for each of 0, 10, 30, 100, 300, 1000, 3000 and 10000 us to the next. Of n pairs `relative` is the
/// ceil(0.99 n)-th smallest difference, which at least 99% of pairs stay within: with fewer than 100 pairs, the
/// largest. Pairs that are not finite and positive are left out.
std::vector<NoiseClass> noise_classes(const std::vector<NoisePair>& pairs);

struct NoiseTable {
  int restarts = 0;
  std::string learned;      ///< UTC, as the records' `started`
  std::string device_uuid;  ///< noise_key: a name made of the processor's model on the CPU
  std::string driver;       ///< noise_driver: empty on the CPU
  std::vector<NoiseClass> classes;
};

/// Every two processes' medians of a row that passed in both are a pair; a row's pairs fall into the class of the
/// median over its processes. Throws std::runtime_error where there are no pairs, or the runs are not of one device.
NoiseTable learn_noise(const std::vector<reports::Records>& runs, std::string learned, std::string driver);

/// `{"classes": [...]}`: what a run's own A/A pairs give, for the header's `noise.a_a`.
nlohmann::ordered_json to_json(const std::vector<NoiseClass>& classes);
nlohmann::ordered_json to_json(const NoiseTable& table);

/// What a device's table is kept under, from its own facts or from a record's header.
std::string noise_key(const DeviceFacts& facts);
std::string noise_key(const nlohmann::ordered_json& header);
/// The driver's release where NVML tells it, otherwise the CUDA version that the header has; empty on the CPU.
std::string noise_driver(const std::string& uuid, const std::string& cuda_driver);

/// noise-KEY.json in the folder that FUSEBENCH_NOISE names, by default ~/.cache/fusebench.
std::filesystem::path noise_file(const std::string& key);
void write_noise(const std::filesystem::path& file, const NoiseTable& table);  ///< throws std::runtime_error
/// The table, or why there is none to use: none was learned, it is damaged, or another driver's.
Known<NoiseTable> read_noise(const std::filesystem::path& file, const std::string& driver);
Known<NoiseTable> noise_of(const DeviceFacts& facts);

}  // namespace fusebench
