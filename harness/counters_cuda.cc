#include "harness/counters_cuda.h"

#include <cuda.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#if FUSEBENCH_HAS_CUPTI
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>
#include <cupti_version.h>
#endif

namespace fusebench {

#if FUSEBENCH_HAS_CUPTI

namespace {

// In the order of Traffic's members; all of them fit into one pass, so that nothing runs twice.
constexpr std::array<const char*, 4> kMetrics = {"dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum",
                                                 "gpu__time_duration.sum"};

std::string remedy(CUptiResult status) {
  switch (status) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      return "; the driver lets only the administrator read counters: see "
             "https://developer.nvidia.com/ERR_NVGPUCTRPERM";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_HARDWARE_BUSY:
      return "; another profiler holds the counters";
    default:
      return "";
  }
}

void check(CUptiResult status, const char* call, const char* file, int line) {
  if (status == CUPTI_SUCCESS) return;
  const char* name = nullptr;
  if (cuptiGetResultString(status, &name) != CUPTI_SUCCESS || name == nullptr) name = "unknown CUPTI error";
  throw std::runtime_error(fmt::format("{}: {}{} ({}:{})", call, name, remedy(status), file, line));
}
#define FUSEBENCH_CUPTI_CHECK(call) check((call), #call, __FILE__, __LINE__)

struct ReleaseHost {
  void operator()(CUpti_Profiler_Host_Object* object) const {
    CUpti_Profiler_Host_Deinitialize_Params host = {CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE};
    host.pHostObject = object;
    cuptiProfilerHostDeinitialize(&host);
  }
};

// What the hardware is to count, in its own terms: making it takes some tenths of a second, so it is made once.
class CounterConfig {
 public:
  explicit CounterConfig(int device_index) {
    CUpti_Profiler_Initialize_Params initialize = {CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
    FUSEBENCH_CUPTI_CHECK(cuptiProfilerInitialize(&initialize));
    open_host(device_index);
    make_image();
  }

  static std::shared_ptr<const CounterConfig> of(int device_index) {
    static std::map<int, std::shared_ptr<const CounterConfig>> made;
    std::shared_ptr<const CounterConfig>& config = made[device_index];
    if (!config) config = std::make_shared<const CounterConfig>(device_index);
    return config;
  }

  CUpti_Profiler_Host_Object* host() const { return host_.get(); }
  const std::vector<std::uint8_t>& image() const { return image_; }

 private:
  void open_host(int device_index) {
    CUpti_Device_GetChipName_Params chip = {CUpti_Device_GetChipName_Params_STRUCT_SIZE};
    chip.deviceIndex = static_cast<std::size_t>(device_index);
    FUSEBENCH_CUPTI_CHECK(cuptiDeviceGetChipName(&chip));

    CUpti_Profiler_GetCounterAvailability_Params available = {CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE};
    FUSEBENCH_CUPTI_CHECK(cuptiProfilerGetCounterAvailability(&available));
    availability_.resize(available.counterAvailabilityImageSize);
    available.pCounterAvailabilityImage = availability_.data();
    FUSEBENCH_CUPTI_CHECK(cuptiProfilerGetCounterAvailability(&available));

    CUpti_Profiler_Host_Initialize_Params host = {CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE};
    host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    host.pChipName = chip.pChipName;
    host.pCounterAvailabilityImage = availability_.data();
    FUSEBENCH_CUPTI_CHECK(cuptiProfilerHostInitialize(&host));
    host_.reset(host.pHostObject);
  }

  void make_image() {
    CUpti_Profiler_Host_ConfigAddMetrics_Params metrics = {CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE};
    metrics.pHostObject = host_.get();
    metrics.ppMetricNames = const_cast<const char**>(kMetrics.data());
    metrics.numMetrics = kMetrics.size();
    FUSEBENCH_CUPTI_CHECK(cuptiProfilerHostConfigAddMetrics(&metrics));

    CUpti_Profiler_Host_GetConfigImageSize_Params size = {CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE};
    size.pHostObject = host_.get();
    FUSEBENCH_CUPTI_CHECK(cuptiProfilerHostGetConfigImageSize(&size));
    image_.resize(size.configImageSize);
    CUpti_Profiler_Host_GetConfigImage_Params image = {CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE};
    image.pHostObject = host_.get();
    image.configImageSize = image_.size();
    image.pConfigImage = image_.data();
    FUSEBENCH_CUPTI_CHECK(cuptiProfilerHostGetConfigImage(&image));

    CUpti_Profiler_Host_GetNumOfPasses_Params passes = {CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE};
    passes.configImageSize = image_.size();
    passes.pConfigImage = image_.data();
    FUSEBENCH_CUPTI_CHECK(cuptiProfilerHostGetNumOfPasses(&passes));
    if (passes.numOfPasses != 1) {
      throw std::runtime_error(
          fmt::format("the counters need {} passes on this device, one is taken", passes.numOfPasses));
    }
  }

  std::vector<std::uint8_t> availability_;  // read by the host object as long as that lives
  std::unique_ptr<CUpti_Profiler_Host_Object, ReleaseHost> host_;
  std::vector<std::uint8_t> image_;
};

class CuptiCounters final : public Counters {
 public:
  CuptiCounters(int device_index, std::function<void()> synchronize)
      : synchronize_(std::move(synchronize)), config_(CounterConfig::of(device_index)) {
    CUpti_RangeProfiler_Enable_Params enable = {CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE};
    FUSEBENCH_CUPTI_CHECK(cuptiRangeProfilerEnable(&enable));
    profiler_ = enable.pRangeProfilerObject;
  }
  ~CuptiCounters() override {
    CUpti_RangeProfiler_Disable_Params disable = {CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE};
    disable.pRangeProfilerObject = profiler_;
    cuptiRangeProfilerDisable(&disable);
  }
  CuptiCounters(const CuptiCounters&) = delete;
  CuptiCounters& operator=(const CuptiCounters&) = delete;

  std::string source() const override { return fmt::format("cupti {} range profiler", CUPTI_API_VERSION); }

  std::vector<Traffic> count(const std::vector<Piece>& pieces) override {
    const auto counted = std::count_if(pieces.begin(), pieces.end(), [](const Piece& piece) { return piece.counted; });
    const auto ranges = static_cast<std::size_t>(counted);
    start(ranges);
    try {
      std::size_t next = 0;
      for (const Piece& piece : pieces) run(piece, next);
    } catch (...) {
      stop();
      throw;
    }
    stop();
    return decode(ranges);
  }

 private:
  void start(std::size_t ranges) {
    CUpti_RangeProfiler_GetCounterDataSize_Params size = {CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE};
    size.pRangeProfilerObject = profiler_;
    size.pMetricNames = const_cast<const char**>(kMetrics.data());
    size.numMetrics = kMetrics.size();
    size.maxNumOfRanges = ranges;
    size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(ranges);
    FUSEBENCH_CUPTI_CHECK(cuptiRangeProfilerGetCounterDataSize(&size));
    data_.assign(size.counterDataSize, 0);
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params data = {
        CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE};
    data.pRangeProfilerObject = profiler_;
    data.counterDataSize = data_.size();
    data.pCounterData = data_.data();
    FUSEBENCH_CUPTI_CHECK(cuptiRangeProfilerCounterDataImageInitialize(&data));

    CUpti_RangeProfiler_SetConfig_Params config = {CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE};
    config.pRangeProfilerObject = profiler_;
    config.configSize = config_->image().size();
    config.pConfig = config_->image().data();
    config.counterDataImageSize = data_.size();
    config.pCounterDataImage = data_.data();
    config.range = CUPTI_UserRange;
    config.replayMode = CUPTI_UserReplay;
    config.maxRangesPerPass = ranges;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    config.passIndex = 0;
    config.targetNestingLevel = 1;
    FUSEBENCH_CUPTI_CHECK(cuptiRangeProfilerSetConfig(&config));
    CUpti_RangeProfiler_Start_Params start = {CUpti_RangeProfiler_Start_Params_STRUCT_SIZE};
    start.pRangeProfilerObject = profiler_;
    FUSEBENCH_CUPTI_CHECK(cuptiRangeProfilerStart(&start));
  }

  void run(const Piece& piece, std::size_t& next) {
    if (!piece.counted) {
      piece.work();
      synchronize_();
      return;
    }
    const std::string name = fmt::format("{}", next++);
    CUpti_RangeProfiler_PushRange_Params push = {CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE};
    push.pRangeProfilerObject = profiler_;
    push.pRangeName = name.c_str();
    FUSEBENCH_CUPTI_CHECK(cuptiRangeProfilerPushRange(&push));
    piece.work();
    synchronize_();
    CUpti_RangeProfiler_PopRange_Params pop = {CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE};
    pop.pRangeProfilerObject = profiler_;
    FUSEBENCH_CUPTI_CHECK(cuptiRangeProfilerPopRange(&pop));
  }

  void stop() {
    CUpti_RangeProfiler_Stop_Params stop = {CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE};
    stop.pRangeProfilerObject = profiler_;
    FUSEBENCH_CUPTI_CHECK(cuptiRangeProfilerStop(&stop));
  }

  std::vector<Traffic> decode(std::size_t ranges) {
    CUpti_RangeProfiler_DecodeData_Params decode = {CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE};
    decode.pRangeProfilerObject = profiler_;
    FUSEBENCH_CUPTI_CHECK(cuptiRangeProfilerDecodeData(&decode));
    CUpti_RangeProfiler_GetCounterDataInfo_Params info = {CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE};
    info.pCounterDataImage = data_.data();
    info.counterDataImageSize = data_.size();
    FUSEBENCH_CUPTI_CHECK(cuptiRangeProfilerGetCounterDataInfo(&info));
    if (decode.numOfRangeDropped != 0 || info.numTotalRanges != ranges) {
      throw std::runtime_error(fmt::format("CUPTI kept {} of {} ranges", info.numTotalRanges, ranges));
    }
    std::vector<Traffic> traffic(ranges);
    for (std::size_t i = 0; i < ranges; ++i) traffic.at(index_of(i)) = value_of(i);
    return traffic;
  }

  // The counter data need not keep the order in which the ranges ran.
  std::size_t index_of(std::size_t range) const {
    CUpti_RangeProfiler_CounterData_GetRangeInfo_Params info = {
        CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE};
    info.pCounterDataImage = data_.data();
    info.counterDataImageSize = data_.size();
    info.rangeIndex = range;
    info.rangeDelimiter = "/";
    FUSEBENCH_CUPTI_CHECK(cuptiRangeProfilerCounterDataGetRangeInfo(&info));
    return std::stoul(info.rangeName);
  }

  Traffic value_of(std::size_t range) const {
    std::array<double, kMetrics.size()> values{};
    CUpti_Profiler_Host_EvaluateToGpuValues_Params evaluate = {
        CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE};
    evaluate.pHostObject = config_->host();
    evaluate.pCounterDataImage = data_.data();
    evaluate.counterDataImageSize = data_.size();
    evaluate.rangeIndex = range;
    evaluate.ppMetricNames = const_cast<const char**>(kMetrics.data());
    evaluate.numMetrics = kMetrics.size();
    evaluate.pMetricValues = values.data();
    FUSEBENCH_CUPTI_CHECK(cuptiProfilerHostEvaluateToGpuValues(&evaluate));
    if (!std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); })) {
      throw std::runtime_error("CUPTI gave a counter that is not a finite number");
    }
    return {.dram_read_bytes = std::llround(values[0]),
            .dram_write_bytes = std::llround(values[1]),
            .l2_bytes = std::llround(values[2]),
            .gpu_us = values[3] / 1e3};
  }

  std::function<void()> synchronize_;
  std::shared_ptr<const CounterConfig> config_;
  CUpti_RangeProfiler_Object* profiler_ = nullptr;
  std::vector<std::uint8_t> data_;
};

}  // namespace

std::unique_ptr<Counters> open_cupti_counters(int device_index, std::function<void()> synchronize) {
  return std::make_unique<CuptiCounters>(device_index, std::move(synchronize));
}

#else

std::unique_ptr<Counters> open_cupti_counters(int /*device_index*/, std::function<void()> /*synchronize*/) {
  throw std::runtime_error("this build has no CUPTI: install the toolkit's CUPTI (cuda-cupti-dev) and build again");
}

#endif

}  // namespace fusebench
