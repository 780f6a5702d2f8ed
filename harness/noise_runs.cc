#include "harness/noise_runs.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "harness/attached_tools.h"
#include "harness/config.h"
#include "harness/noise.h"
#include "harness/run.h"
#include "reports/records.h"

namespace fusebench {
namespace {

namespace fs = std::filesystem;

class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "fusebench-noise-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder for the runs in " + name);
    path_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Runs a program with all that it prints in `log`; its exit code, or 128 and the signal that ended it.
int run_process(const std::vector<std::string>& command, const fs::path& log) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int status = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0) {
    throw std::runtime_error(
        fmt::format("{} cannot be started: {}", command[0], std::generic_category().message(status)));
  }
  int ended = 0;
  while (waitpid(child, &ended, 0) < 0) {
    if (errno != EINTR) throw std::runtime_error("waitpid: " + std::generic_category().message(errno));
  }
  return WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
}

std::string end_of(const fs::path& log) {
  std::ifstream file(log);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  constexpr std::size_t kMost = 2000;
  return text.size() > kMost ? text.substr(text.size() - kMost) : text;
}

reports::Records one_run(const DoctorOptions& options, const std::string& backend, const fs::path& sweep,
                         const fs::path& scratch, int number) {
  const fs::path folder = scratch / std::to_string(number);
  const fs::path log = folder.string() + ".log";
  const int code = run_process({fs::read_symlink("/proc/self/exe").string(), "run", sweep.string(), "--backend",
                                backend, "--device", std::to_string(options.device), "--oracle-cache",
                                (scratch / "oracle").string(), "--quiet", "-o", folder.string()},
                               log);
  if (code == kPassed || code == kCheckFailed) return reports::read_records(folder / "results.jsonl");
  throw std::runtime_error(
      fmt::format("run {} of {} ended with code {}:\n{}", number, sweep.string(), code, end_of(log)));
}

}  // namespace

NoiseTable learn_noise_here(const DoctorOptions& options) {
  if (options.restarts < 3) throw UsageError("--restarts: three processes or more show how they differ");
  const std::string tool = attached_tool();
  if (!tool.empty())
    throw UsageError(fmt::format("--noise: {} is attached, and its noise is not the device's; run without it", tool));
  // The device is not opened here: a context of ours would be company for the runs.
  const Backend backend = backend_of(options.backend);
  const fs::path sweep = !options.sweep.empty()
                             ? options.sweep
                             : configs_folder() / (backend == Backend::cuda ? "noise.yaml" : "noise_cpu.yaml");
  (void)load_config(sweep, backend);  // its mistakes are told once, before anything runs
  const Scratch scratch;
  std::vector<reports::Records> runs;
  for (int number = 1; number <= options.restarts; ++number) {
    std::fputs(fmt::format("process {} of {}\n", number, options.restarts).c_str(), stderr);
    runs.push_back(one_run(options, std::string(name_of(backend)), sweep, scratch.path(), number));
  }
  const reports::Json device = runs.front().header.value("device", reports::Json::object());
  const std::string driver =
      noise_driver(reports::text_of(device, "uuid"), reports::text_of(runs.front().header, "driver"));
  const auto now = fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  NoiseTable table = learn_noise(runs, fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", now), driver);
  write_noise(noise_file(table.device_uuid), table);
  return table;
}

}  // namespace fusebench
