// What lies between the profiler's marks is one launch of a plan, from the state of the cache that was asked for; and
// what is printed launches just that.
#include "harness/profile.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/cpu_backed_device.h"

using namespace fusebench;

namespace {

// The CPU, with a note of what it was told to do. A plan asks for `exec` once a launch.
class NotingDevice final : public testing::CpuBackedDevice {
 public:
  std::vector<std::string> calls;
  bool breaks = false;  // the next marked launch throws

  const DeviceFacts& facts() const override { return cpu_->facts(); }
  Exec exec() const override {
    const_cast<NotingDevice*>(this)->note_launch();
    return cpu_->exec();
  }
  std::int64_t free_bytes() const override { return free_bytes_; }
  void flush_cache() override { calls.emplace_back("flush"); }
  void drain_cache() override {}
  void synchronize() override { calls.emplace_back("wait"); }
  Times time(const std::vector<std::function<void()>>& works, bool hold) override { return cpu_->time(works, hold); }
  void transfer(Transfer kind, void* to, const void* from, std::int64_t bytes) override {
    cpu_->transfer(kind, to, from, bytes);
  }
  void launch_empty() override {}
  void launch_delay(double /*us*/) override {}
  DeviceState state() const override { return cpu_->state(); }
  std::unique_ptr<Counters> open_counters() override { return cpu_->open_counters(); }
  void profiler_start() override { calls.emplace_back("start"); }
  void profiler_stop() override { calls.emplace_back("stop"); }
  std::function<void()> capture(const std::function<void()>& work) override {
    return [this, work] {
      calls.emplace_back("graph");
      work();
    };
  }

  void set_free_bytes(std::int64_t bytes) { free_bytes_ = bytes; }

 private:
  void note_launch() {
    if (breaks && !calls.empty() && calls.back() == "start") throw std::runtime_error("the launch broke");
    calls.emplace_back("launch");
  }
  std::int64_t free_bytes_ = std::int64_t{1} << 30;
};

Case tiny() { return canonical({.op = Op::rmsnorm, .dtype = DType::fp32, .dim = 64, .batch = 1, .seq = 4}); }

// The last calls, from the launch that warms up.
std::vector<std::string> calls_with(const ProfileOptions& options, NotingDevice& device, std::size_t last) {
  std::vector<std::string> said;
  Launching launching{
      .device = device, .options = options, .say = [&](const std::string& line) { said.push_back(line); }};
  launch_row(tiny(), "fused", launching);
  CHECK(said.size() == static_cast<std::size_t>(options.launches));
  CHECK(launching.ranges == options.launches);
  REQUIRE(device.calls.size() >= last);
  return {device.calls.end() - static_cast<std::ptrdiff_t>(last), device.calls.end()};
}

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE("each launch has marks of its own, and its flush lies outside of them", "[profile]") {
  NotingDevice device;
  CHECK(calls_with({.launches = 2}, device, 13) == Calls{"launch", "flush", "wait", "start", "launch", "wait", "stop",
                                                         "flush", "wait", "start", "launch", "wait", "stop"});
}

TEST_CASE("hot launches have no flush between them", "[profile]") {
  NotingDevice device;
  CHECK(calls_with({.cache = CacheMode::hot}, device, 6) == Calls{"launch", "wait", "start", "launch", "wait", "stop"});
  CHECK(std::count(device.calls.begin(), device.calls.end(), "flush") == 0);
}

TEST_CASE("a graph is captured and launched once before it is shown", "[profile]") {
  NotingDevice device;
  CHECK(calls_with({.graph = true}, device, 9) ==
        Calls{"graph", "launch", "flush", "wait", "start", "graph", "launch", "wait", "stop"});
}

TEST_CASE("with one range for all a launch sets no marks", "[profile]") {
  NotingDevice device;
  CHECK(calls_with({.one_range = true}, device, 5) == Calls{"launch", "flush", "wait", "launch", "wait"});
}

TEST_CASE("marks end also where the launch between them breaks", "[profile]") {
  NotingDevice device;
  device.breaks = true;
  const ProfileOptions options;
  Launching launching{.device = device, .options = options, .say = [](const std::string&) {}};
  CHECK_THROWS_WITH(launch_row(tiny(), "fused", launching), "the launch broke");
  CHECK(device.calls.back() == "stop");
}

TEST_CASE("what does not fit, or is not there, is unsupported before anything is launched", "[profile]") {
  NotingDevice device;
  const ProfileOptions options;
  Launching launching{.device = device, .options = options, .say = [](const std::string&) {}};
  CHECK_THROWS_AS(launch_row(tiny(), "no such variant", launching), Unsupported);
  device.set_free_bytes(100);
  CHECK_THROWS_AS(launch_row(tiny(), "fused", launching), Unsupported);
  CHECK(device.calls.empty());
  CHECK(launching.ranges == 0);
}

TEST_CASE("the printed commands choose what was chosen", "[profile]") {
  const ProfileOptions plain{.config = "configs/quick.yaml"};
  CHECK(launch_command("/bin/fusebench", plain) == "/bin/fusebench profile configs/quick.yaml --launch");
  const ProfileOptions all{.config = "my sweep.yaml",
                           .backend = "cuda",
                           .device = 1,
                           .filters = {"attention*/fused", "naive"},
                           .launches = 3,
                           .cache = CacheMode::hot,
                           .graph = true};
  CHECK(
      launch_command("fusebench", all) ==
      "fusebench profile 'my sweep.yaml' --launch --backend cuda --device 1 --filter 'attention*/fused' --filter naive "
      "--launches 3 --cache hot --graph");
  for (const ProfileOptions& options : {plain, all}) {
    const std::vector<ProfilerCommand> commands = profiler_commands("fusebench", options);
    REQUIRE(commands.size() == 3);
    for (const ProfilerCommand& command : commands) {
      CHECK_THAT(command.line, ContainsSubstring(launch_command("fusebench", options)));
    }
    CHECK_THAT(commands[0].line,
               ContainsSubstring("--replay-mode app-range --clock-control none --cache-control none"));
    CHECK_THAT(commands[1].line, ContainsSubstring("--set full"));
    CHECK_THAT(commands[2].line, ContainsSubstring("--capture-range=cudaProfilerApi"));
    CHECK_THAT(commands[2].line, ContainsSubstring("--one-range"));
  }
}
