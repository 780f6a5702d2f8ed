#include "harness/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace fusebench {
namespace {

// The C interface as nvml.h of CUDA 13.0 has it (NVML API version 13). These functions and layouts are older: all are
// in drivers from 535 on, and what a driver lacks is a missing symbol, which is told like any other failure.
namespace abi {

using Card = struct nvmlDevice_st*;

constexpr int kSuccess = 0;
constexpr unsigned kClockSm = 1;
constexpr unsigned kClockMemory = 2;
constexpr unsigned kTemperatureGpu = 0;
constexpr unsigned kUncorrected = 1;
constexpr unsigned kVolatile = 0;
constexpr unsigned kFieldPowerInstant = 186;
constexpr unsigned kValueUnsigned = 1;

union Value {
  double as_double;
  unsigned as_unsigned;
  unsigned long long as_unsigned_long_long;
};
struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  unsigned value_type;
  int status;
  Value value;
};
struct Process {
  unsigned pid;
  unsigned long long memory_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};

using Plain = int();
using ErrorString = const char*(int status);
using SystemText = int(char* text, unsigned length);
using CardByUuid = int(const char* uuid, Card* card);
using CardOfSlice = int(Card slice, Card* card);
using OneUnsigned = int(Card, unsigned*);
using TwoUnsigned = int(Card, unsigned*, unsigned*);
using TypedUnsigned = int(Card, unsigned type, unsigned*);
using OneLong = int(Card, unsigned long long*);
using EccErrors = int(Card, unsigned type, unsigned counter, unsigned long long*);
using FieldValues = int(Card, int count, FieldValue*);
using Processes = int(Card, unsigned* count, Process*);

}  // namespace abi

constexpr unsigned long long kNotAvailable = ~0ULL;

abi::Card handle(void* card) { return static_cast<abi::Card>(card); }

NvmlLookup lookup_in(const std::string& library, std::string& missing) {
  // Left open on purpose: the driver's libraries do not like to be unloaded, and there is one of it.
  void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* why = dlerror();
    missing = fmt::format("NVML is not there: {}", why != nullptr ? why : library);
    return [](const char*) -> void* { return nullptr; };
  }
  return [opened](const char* name) { return dlsym(opened, name); };
}

template <class T>
Known<T> unknown(std::string why) {
  return Known<T>::unknown(std::move(why));
}

}  // namespace

// What went wrong, or nothing. A lost card or a missing right is one query's failure, not the caller's.
template <class Prototype, class... Arguments>
std::string Nvml::call(const char* name, Arguments... arguments) const {
  if (!missing_.empty()) return missing_;
  auto* const function = reinterpret_cast<Prototype*>(lookup_(name));
  if (function == nullptr) return fmt::format("{}: this driver's NVML does not have it", name);
  const int status = function(arguments...);
  if (status == abi::kSuccess) return {};
  auto* const describe = reinterpret_cast<abi::ErrorString*>(lookup_("nvmlErrorString"));
  return fmt::format("{}: {}", name, describe != nullptr ? describe(status) : fmt::format("error {}", status).c_str());
}

Nvml::Nvml(const std::string& uuid, const std::string& library) {
  lookup_ = lookup_in(library, missing_);
  open(uuid);
}

Nvml::Nvml(const std::string& uuid, NvmlLookup lookup) : lookup_(std::move(lookup)) { open(uuid); }

Nvml::~Nvml() {
  missing_.clear();
  if (started_) (void)call<abi::Plain>("nvmlShutdown");
}

void Nvml::open(const std::string& uuid) {
  if (!missing_.empty()) return;
  if (uuid.empty()) {
    missing_ = "NVML knows cards by their UUID, and this device has none";
    return;
  }
  std::string failure = call<abi::Plain>("nvmlInit_v2");
  started_ = failure.empty();
  if (started_ && !find_card(uuid)) failure = fmt::format("NVML does not know the card {}", uuid);
  missing_ = std::move(failure);
}

bool Nvml::find_card(const std::string& uuid) {
  const auto by_uuid = [this](const std::string& name) {
    abi::Card found = nullptr;
    if (!call<abi::CardByUuid>("nvmlDeviceGetHandleByUUID", name.c_str(), &found).empty()) return false;
    slice_ = found;
    return true;
  };
  if (!by_uuid(uuid) && !(uuid.rfind("GPU-", 0) == 0 && by_uuid("MIG-" + uuid.substr(4)))) return false;
  abi::Card card = nullptr;
  const bool is_slice =
      call<abi::CardOfSlice>("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle(slice_), &card).empty();
  card_ = is_slice ? card : slice_;
  return true;
}

Known<double> Nvml::typed(const char* name, unsigned type) const {
  unsigned figure = 0;
  std::string failure = call<abi::TypedUnsigned>(name, handle(card_), type, &figure);
  if (!failure.empty()) return unknown<double>(std::move(failure));
  return static_cast<double>(figure);
}

Known<double> Nvml::sm_mhz() const { return typed("nvmlDeviceGetClockInfo", abi::kClockSm); }
Known<double> Nvml::max_sm_mhz() const { return typed("nvmlDeviceGetMaxClockInfo", abi::kClockSm); }
Known<double> Nvml::memory_mhz() const { return typed("nvmlDeviceGetClockInfo", abi::kClockMemory); }
Known<double> Nvml::max_memory_mhz() const { return typed("nvmlDeviceGetMaxClockInfo", abi::kClockMemory); }

Known<double> Nvml::milli(const char* name) const {
  unsigned thousandths = 0;
  std::string failure = call<abi::OneUnsigned>(name, handle(card_), &thousandths);
  if (!failure.empty()) return unknown<double>(std::move(failure));
  return thousandths / 1e3;
}

Known<double> Nvml::instant_power_w() const {
  abi::FieldValue field{};
  field.field = abi::kFieldPowerInstant;
  std::string failure = call<abi::FieldValues>("nvmlDeviceGetFieldValues", handle(card_), 1, &field);
  if (!failure.empty()) return unknown<double>(std::move(failure));
  if (field.status != abi::kSuccess || field.value_type != abi::kValueUnsigned) {
    return unknown<double>("the card does not tell its power of this moment");
  }
  return field.value.as_unsigned / 1e3;
}

Known<double> Nvml::power_w() const {
  const Known<double> instant = instant_power_w();
  return instant.value ? instant : milli("nvmlDeviceGetPowerUsage");
}

Known<double> Nvml::power_limit_w() const { return milli("nvmlDeviceGetEnforcedPowerLimit"); }

Known<double> Nvml::energy_mj() const {
  unsigned long long mj = 0;
  std::string failure = call<abi::OneLong>("nvmlDeviceGetTotalEnergyConsumption", handle(card_), &mj);
  if (!failure.empty()) return unknown<double>(std::move(failure));
  return static_cast<double>(mj);
}

Known<double> Nvml::temperature_c() const { return typed("nvmlDeviceGetTemperature", abi::kTemperatureGpu); }

Known<std::uint64_t> Nvml::clock_events() const {
  unsigned long long events = 0;
  std::string failure = call<abi::OneLong>("nvmlDeviceGetCurrentClocksEventReasons", handle(card_), &events);
  if (!failure.empty()) {  // its name before driver 535
    failure = call<abi::OneLong>("nvmlDeviceGetCurrentClocksThrottleReasons", handle(card_), &events);
  }
  if (!failure.empty()) return unknown<std::uint64_t>(std::move(failure));
  return static_cast<std::uint64_t>(events);
}

Known<std::string> Nvml::driver() const {
  std::array<char, 81> text{};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE is 80
  std::string failure = call<abi::SystemText>("nvmlSystemGetDriverVersion", text.data(), 80U);
  if (!failure.empty()) return unknown<std::string>(std::move(failure));
  return std::string(text.data());
}

Known<bool> Nvml::ecc() const {
  unsigned now = 0;
  unsigned after_reboot = 0;
  std::string failure = call<abi::TwoUnsigned>("nvmlDeviceGetEccMode", handle(card_), &now, &after_reboot);
  if (!failure.empty()) return unknown<bool>(std::move(failure));
  return now != 0;
}

Known<std::int64_t> Nvml::uncorrected_ecc_errors() const {
  unsigned long long errors = 0;
  std::string failure =
      call<abi::EccErrors>("nvmlDeviceGetTotalEccErrors", handle(card_), abi::kUncorrected, abi::kVolatile, &errors);
  if (!failure.empty()) return unknown<std::int64_t>(std::move(failure));
  return static_cast<std::int64_t>(errors);
}

Known<bool> Nvml::mig() const {
  unsigned now = 0;
  unsigned after_reset = 0;
  std::string failure = call<abi::TwoUnsigned>("nvmlDeviceGetMigMode", handle(card_), &now, &after_reset);
  if (!failure.empty()) return unknown<bool>(std::move(failure));
  return now != 0;
}

Known<bool> Nvml::persistence() const {
  unsigned mode = 0;
  std::string failure = call<abi::OneUnsigned>("nvmlDeviceGetPersistenceMode", handle(card_), &mode);
  if (!failure.empty()) return unknown<bool>(std::move(failure));
  return mode != 0;
}

Known<std::vector<ComputeProcess>> Nvml::other_processes() const {
  constexpr unsigned kMost = 1024;  // more would be told as an error, which is an answer too
  std::vector<abi::Process> found(kMost);
  unsigned count = kMost;
  std::string failure =
      call<abi::Processes>("nvmlDeviceGetComputeRunningProcesses_v3", handle(slice_), &count, found.data());
  if (!failure.empty()) return unknown<std::vector<ComputeProcess>>(std::move(failure));
  found.resize(std::min(count, kMost));
  std::vector<ComputeProcess> others;
  for (const abi::Process& process : found) {
    if (process.pid == static_cast<unsigned>(getpid())) continue;
    Known<std::int64_t> memory = unknown<std::int64_t>("the driver does not tell it");
    if (process.memory_bytes != kNotAvailable) memory = static_cast<std::int64_t>(process.memory_bytes);
    others.push_back({.pid = process.pid, .memory_bytes = std::move(memory)});
  }
  return others;
}

std::string clock_event_words(std::uint64_t events) {
  constexpr std::array<std::pair<std::uint64_t, const char*>, 9> kWords = {
      {{kGpuIdle, "idle"},
       {kClockSetting, "clocks set by a user"},
       {kPowerCap, "power cap"},
       {kHardwareSlowdown, "hardware slowdown"},
       {kSyncBoost, "sync boost with another card"},
       {kThermalSlowdown, "thermal slowdown"},
       {kHardwareThermalSlowdown, "hardware thermal slowdown"},
       {kPowerBrake, "power brake"},
       {kDisplayClockSetting, "display clock setting"}}};
  std::vector<std::string> words;
  for (const auto& [bit, word] : kWords) {
    if ((events & bit) != 0) words.emplace_back(word);
    events &= ~bit;
  }
  if (events != 0) words.push_back(fmt::format("{:#x}", events));
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace fusebench
