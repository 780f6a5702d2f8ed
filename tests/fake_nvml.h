// A libnvidia-ml of the test's own: one card, whose answers the test sets.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "harness/nvml.h"

namespace fusebench::testing {

inline constexpr const char* kFakeUuid = "GPU-00112233-4455-6677-8899-aabbccddeeff";

struct FakeCard {
  std::string uuid = kFakeUuid;
  unsigned sm_mhz = 1980;
  unsigned power_mw = 412500;
  bool instant_power = true;
  unsigned long long events = 0;
  unsigned ecc = 1;
  unsigned long long uncorrected = 0;
  unsigned mig = 0;
  unsigned persistence = 1;
  bool other_process = false;
  int init_status = 0;
  std::map<std::string, int> status;  ///< of functions that fail, by name
  int starts = 0, stops = 0;
};
inline FakeCard& fake_card() {
  static FakeCard card;
  return card;
}

namespace fake {

struct Field {  // nvmlFieldValue_t
  unsigned field, scope;
  long long timestamp, latency_us;
  unsigned value_type;
  int status;
  unsigned long long value;
};
struct Process {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long memory_bytes;
  unsigned gpu_instance, compute_instance;
};

inline int status_of(const char* name) {
  const auto found = fake_card().status.find(name);
  return found == fake_card().status.end() ? 0 : found->second;
}
template <class T, class V>
int answer(const char* name, T* out, V value) {
  *out = static_cast<T>(value);
  return status_of(name);
}

inline int init() {
  if (fake_card().init_status == 0) ++fake_card().starts;
  return fake_card().init_status;
}
inline int shutdown() {
  ++fake_card().stops;
  return 0;
}
inline const char* error_string(int status) { return status == 4 ? "Insufficient Permissions" : "Not Supported"; }
inline int driver(char* text, unsigned length) {
  std::snprintf(text, length, "580.65.06");
  return 0;
}
inline int by_uuid(const char* uuid, void** card) {
  *card = &fake_card();
  return uuid == fake_card().uuid ? 0 : 6;
}
inline int clock(void*, unsigned type, unsigned* mhz) {
  return answer("nvmlDeviceGetClockInfo", mhz, type == 1 ? fake_card().sm_mhz : 2619);
}
inline int max_clock(void*, unsigned type, unsigned* mhz) {
  return answer("nvmlDeviceGetMaxClockInfo", mhz, type == 1 ? 1980 : 2619);
}
inline int power(void*, unsigned* mw) { return answer("nvmlDeviceGetPowerUsage", mw, fake_card().power_mw - 500); }
inline int power_limit(void*, unsigned* mw) { return answer("nvmlDeviceGetEnforcedPowerLimit", mw, 700000); }
inline int fields(void*, int count, Field* field) {
  field->status = count == 1 && field->field == 186 && fake_card().instant_power ? 0 : 3;
  field->value_type = 1;
  field->value = fake_card().power_mw;
  return 0;
}
inline int energy(void*, unsigned long long* mj) {
  return answer("nvmlDeviceGetTotalEnergyConsumption", mj, 123456789);
}
inline int temperature(void*, unsigned, unsigned* c) { return answer("nvmlDeviceGetTemperature", c, 41); }
inline int events(void*, unsigned long long* bits) {
  return answer("nvmlDeviceGetCurrentClocksEventReasons", bits, fake_card().events);
}
inline int ecc(void*, unsigned* now, unsigned* later) {
  *later = fake_card().ecc;
  return answer("nvmlDeviceGetEccMode", now, fake_card().ecc);
}
inline int ecc_errors(void*, unsigned type, unsigned counter, unsigned long long* count) {
  return answer("nvmlDeviceGetTotalEccErrors", count, type == 1 && counter == 0 ? fake_card().uncorrected : 99);
}
inline int mig(void*, unsigned* now, unsigned* later) {
  *later = fake_card().mig;
  return answer("nvmlDeviceGetMigMode", now, fake_card().mig);
}
inline int persistence(void*, unsigned* mode) {
  return answer("nvmlDeviceGetPersistenceMode", mode, fake_card().persistence);
}
inline int processes(void*, unsigned* count, Process* process) {
  process[0] = {.pid = static_cast<unsigned>(getpid()), .memory_bytes = 1 << 20};
  process[1] = {.pid = 4711, .memory_bytes = 3ULL << 30};
  process[2] = {.pid = 4712, .memory_bytes = ~0ULL};
  return answer("nvmlDeviceGetComputeRunningProcesses_v3", count, fake_card().other_process ? 3 : 1);
}

}  // namespace fake

using FakeFunctions = std::map<std::string, void*>;

inline FakeFunctions fake_functions() {
  const auto any = [](auto* function) { return reinterpret_cast<void*>(function); };
  return {{"nvmlInit_v2", any(fake::init)},
          {"nvmlShutdown", any(fake::shutdown)},
          {"nvmlErrorString", any(fake::error_string)},
          {"nvmlSystemGetDriverVersion", any(fake::driver)},
          {"nvmlDeviceGetHandleByUUID", any(fake::by_uuid)},
          {"nvmlDeviceGetClockInfo", any(fake::clock)},
          {"nvmlDeviceGetMaxClockInfo", any(fake::max_clock)},
          {"nvmlDeviceGetPowerUsage", any(fake::power)},
          {"nvmlDeviceGetEnforcedPowerLimit", any(fake::power_limit)},
          {"nvmlDeviceGetFieldValues", any(fake::fields)},
          {"nvmlDeviceGetTotalEnergyConsumption", any(fake::energy)},
          {"nvmlDeviceGetTemperature", any(fake::temperature)},
          {"nvmlDeviceGetCurrentClocksEventReasons", any(fake::events)},
          {"nvmlDeviceGetEccMode", any(fake::ecc)},
          {"nvmlDeviceGetTotalEccErrors", any(fake::ecc_errors)},
          {"nvmlDeviceGetMigMode", any(fake::mig)},
          {"nvmlDeviceGetPersistenceMode", any(fake::persistence)},
          {"nvmlDeviceGetComputeRunningProcesses_v3", any(fake::processes)}};
}

inline NvmlLookup looked_up_in(FakeFunctions functions) {
  return [functions = std::move(functions)](const char* name) -> void* {
    const auto found = functions.find(name);
    return found == functions.end() ? nullptr : found->second;
  };
}

}  // namespace fusebench::testing
