#include "harness/run.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "harness/binding.h"
#include "harness/case_run.h"
#include "harness/estimate.h"
#include "harness/google_benchmark.h"
#include "harness/host_memory.h"
#include "harness/interrupt.h"
#include "harness/mutants.h"
#include "harness/noise.h"
#include "harness/progress.h"
#include "harness/ranges.h"
#include "harness/sampler.h"
#include "harness/shell.h"
#include "reports/sha256.h"
#include "reports/summary.h"
#include "reports/write.h"

namespace fusebench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::tm utc_now() { return fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())); }

bool matches(const std::vector<std::string>& filters, const std::string& id, const std::string& variant) {
  const std::string row = id + "/" + variant;
  return filters.empty() || std::any_of(filters.begin(), filters.end(), [&](const std::string& glob) {
           return fnmatch(glob.c_str(), id.c_str(), 0) == 0 || fnmatch(glob.c_str(), variant.c_str(), 0) == 0 ||
                  fnmatch(glob.c_str(), row.c_str(), 0) == 0;
         });
}

UsageError no_match(const std::vector<std::string>& filters, const Config& config) {
  return UsageError(fmt::format("--filter {}: no row matches; `fusebench run {} --dry-run` lists them",
                                fmt::join(filters, ", "), shell_quoted(config.path.string())));
}

// Makes the folder that an option names, or says why it cannot be written.
void require_folder(std::string_view option, const fs::path& folder) {
  std::error_code status;
  if (fs::exists(folder, status) && !fs::is_directory(folder, status)) {
    throw UsageError(fmt::format("{} {}: is a file; name a folder", option, folder.string()));
  }
  fs::create_directories(folder, status);
  if (status || access(folder.c_str(), W_OK | X_OK) != 0) {
    throw UsageError(fmt::format("{} {}: is not writable; name another folder", option, folder.string()));
  }
}

// A folder that is this run's alone, also when another starts in the same second.
fs::path new_folder(const Config& config) {
  const std::string name = fmt::format("{}-{:%Y%m%d-%H%M%S}", config.name, utc_now());
  require_folder("out:", "out");
  for (int copy = 1;; ++copy) {
    fs::path folder = fs::path("out") / (copy == 1 ? name : fmt::format("{}-{}", name, copy));
    if (fs::create_directory(folder)) return folder;
  }
}

// The folder that the run writes, checked before anything runs, and results.jsonl in it, created here.
fs::path claim_output(const RunOptions& options, const Config& config) {
  fs::path folder = options.output.empty() ? new_folder(config) : options.output;
  require_folder("-o", folder);
  const fs::path records = folder / "results.jsonl";
  const int file = ::open(records.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (options.overwrite ? 0 : O_EXCL), 0666);
  if (file >= 0) {
    ::close(file);
  } else if (errno == EEXIST) {
    throw UsageError(
        fmt::format("-o {}: holds another run's records; add --overwrite to replace them, or name another folder",
                    folder.string()));
  } else {
    throw UsageError(fmt::format("-o {}: results.jsonl cannot be written: {}; name another folder", folder.string(),
                                 std::generic_category().message(errno)));
  }
  if (options.overwrite) reports::remove_reports(folder);  // those of the records that are replaced
  return folder;
}

Json describe(const DeviceFacts& facts) {
  return {{"name", facts.name},
          {"uuid", facts.uuid.empty() ? Json() : Json(facts.uuid)},
          {"compute_capability", facts.compute_capability},
          {"multiprocessors", facts.multiprocessors},
          {"l2_bytes", facts.l2_bytes},
          {"memory_bytes", facts.memory_bytes}};
}

Json header_of(const RunOptions& options, const Config& config, const DeviceFacts& facts) {
  const std::string started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc_now());
  const auto ticks = std::chrono::system_clock::now().time_since_epoch().count();
  const std::string id = sha256_hex(fmt::format("{} {} {} {}", options.command, config.sha256, ticks, getpid()));
  const Known<NoiseTable> noise = noise_of(facts);
  Json header = {{"schema", 1},
                 {"run_id", id.substr(0, 16)},
                 {"name", config.name},
                 {"config", config.path.string()},
                 {"config_sha256", config.sha256},
                 {"command", options.command},
                 {"started", started},
                 {"backend", name_of(facts.backend)},
                 {"device", describe(facts)},
                 {"driver", facts.driver.empty() ? Json() : Json(facts.driver)},
                 {"libraries", Json::object()},
                 {"build", {{"version", FUSEBENCH_VERSION}, {"compiler", FUSEBENCH_COMPILER}}},
                 {"ceilings", nullptr},
                 {"noise", noise.value ? to_json(*noise.value) : Json()},
                 {"noise_reason", noise.value ? Json() : Json(noise.reason)},
                 {"warnings", facts.warnings}};
  for (const auto& [library, version] : facts.libraries) header["libraries"][library] = version;
  if (facts.backend == Backend::cpu) {
    header["device"]["uuid_reason"] = "the CPU has none";
    header["driver_reason"] = "the CPU has none";
  }
  return header;
}

// results.jsonl: a header, then a line a row, flushed as it ends.
class RecordFile {
 public:
  explicit RecordFile(fs::path path) : path_(std::move(path)), file_(path_, std::ios::trunc) { check(); }
  void write(const Json& line) {
    file_ << reports::to_line(line) << std::flush;
    check();
  }
  // All of it anew, at once: a run that is cut off leaves the old lines or the new ones.
  void replace(const std::vector<Json>& lines) {
    std::string text;
    for (const Json& line : lines) text += reports::to_line(line);
    file_.close();
    reports::write_atomically(path_, text);
  }

 private:
  void check() const {
    if (!file_) throw std::runtime_error(path_.string() + ": cannot be written; is the disk full?");
  }
  fs::path path_;
  std::ofstream file_;
};

// The dtypes in which the sweep has products.
std::vector<DType> product_dtypes(const std::vector<Task>& tasks) {
  std::set<DType> dtypes;
  for (const Task& task : tasks) {
    if (spec_of(task.c).flops > 0) dtypes.insert(task.c.dtype);
  }
  return {dtypes.begin(), dtypes.end()};
}

// What is known only at the end: ceilings that rows raised, and so every row's floor; the A/A controls; where time
// went.
void complete(RecordFile& records, Json header, const Ceilings& ceilings, std::vector<Row>& rows,
              const std::vector<Control>& controls, const std::map<std::string, double>& stage_seconds) {
  header["ceilings"] = ceilings.to_json();
  header["controls"] = Json::array();
  std::vector<NoisePair> pairs;
  for (const Control& control : controls) {
    header["controls"].push_back({{"median_us", control.median_us}, {"ratio", control.ratio}});
    pairs.push_back({.duration_us = control.median_us, .ratio = control.ratio});
  }
  if (header["noise"].is_object()) header["noise"]["a_a"] = to_json(noise_classes(pairs));
  double measured_us = 0;
  for (const Row& row : rows) measured_us = std::accumulate(row.samples_us.begin(), row.samples_us.end(), measured_us);
  header["stages_s"] = stage_seconds;
  header["measured_s"] = measured_us / 1e6;
  std::vector<Json> lines = {std::move(header)};
  for (Row& row : rows) {
    ceilings.apply_to(row);
    lines.push_back(to_json(row));
  }
  records.replace(lines);
}

// An A/A control in the first cases, and in every few later ones.
constexpr std::size_t kFirstControls = 4;
constexpr std::size_t kCasesPerControl = 4;
bool has_control(std::size_t index) { return index < kFirstControls || index % kCasesPerControl == 0; }

std::string repro_command(const RunOptions& options, Backend backend, const Case& c, const std::string& variant) {
  return fmt::format("fusebench run {} --backend {}{}{} --filter {}", shell_quoted(options.config.string()),
                     name_of(backend), options.device == 0 ? "" : fmt::format(" --device {}", options.device),
                     options.prove ? " --prove" : "", shell_quoted(case_id(c) + "/" + variant));
}

// What an ended case says on its progress line: "naive pass 812.4 us, fused fail".
std::string outcome_of(const std::vector<Json>& rows) {
  std::vector<std::string> parts;
  for (const Json& row : rows) {
    std::string part = fmt::format("{} {}", row["variant"].get<std::string>(), row["verdict"].get<std::string>());
    if (row["median_us"].is_number()) part += fmt::format(" {:.1f} us", row["median_us"].get<double>());
    parts.push_back(part);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Google Benchmark's JSON or CSV has stdout for itself, so that it can be read by a program.
bool benchmark_takes_stdout(const RunOptions& options) {
  return std::any_of(options.benchmark_flags.begin(), options.benchmark_flags.end(), [](const std::string& flag) {
    return flag == "--benchmark_format=json" || flag == "--benchmark_format=csv";
  });
}

// What is wrong with a flag is said before anything runs.
void check_flags(const RunOptions& options) {
  if (!options.dump.empty()) require_folder("--dump", options.dump);
  if (options.benchmark_flags.empty()) return;
  const std::string mistake = mistake_in(options.benchmark_flags);
  if (!mistake.empty()) throw UsageError(mistake);
}

int finish(const RunOptions& options, const fs::path& folder, const std::vector<Row>& rows) {
  const reports::Records records = reports::write_reports(folder);
  std::FILE* out = benchmark_takes_stdout(options) ? stderr : stdout;
  const std::string summary = reports::summary(records, {.colour = wants_colour(fileno(out)),
                                                         .width = terminal_width(fileno(out)),
                                                         .report_path = (folder / "report.html").string()});
  std::fputs(summary.c_str(), out);
  if (!options.benchmark_flags.empty() && report_through_google_benchmark(rows, options.benchmark_flags) != 0) {
    return kBadUsage;
  }
  std::vector<std::string> verdicts;
  for (const Row& row : rows) verdicts.emplace_back(name_of(row.verdict));
  return exit_code(verdicts);
}

Known<double> floor_of(const Case& c, const OpSpec& spec, const Ceilings& ceilings) {
  Row row;
  row.c = c;
  row.flops = spec.flops;
  row.bytes_compulsory = spec.compulsory_bytes;
  row.bytes_compulsory_written = spec.compulsory_write_bytes;
  ceilings.apply_to(row);
  return floor_us(row);
}

void print_plan(const Case& c, const OpSpec& spec, const std::string& name, const Plan& plan,
                const Known<double>& floor) {
  const auto mb = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  fmt::print("{:<24} {:>13.3f} {:>12.3f} {:>12.3f} {:>12.3f} {:>9.2f} {:>8} {:>10}  {}\n", name,
             mb(spec.compulsory_bytes), mb(plan.modelled_bytes()), mb(BoundPlan::workspace_bytes(plan)),
             mb(BoundPlan::prepared_bytes(plan)), spec.flops / 1e9, plan.launches(),
             floor.value ? fmt::format("{:.2f}", *floor.value) : "-", case_id(c));
}

// A run compares rows that the oracle does not compute with naive's, and binds naive for that.
void add_witness(std::vector<Plan>& plans, const Task& task, const Measure& measure, const Device& device) {
  const bool is_sampled = most_rows(task.c, measure.verify) < task.c.tokens();
  if (!is_sampled || std::find(task.variants.begin(), task.variants.end(), "naive") != task.variants.end()) return;
  try {
    plans.push_back(plan_variant(registry(), task.c, "naive", device.target()));
  } catch (const Unsupported&) {  // then they are not compared
  }
}

bool has_expected_rows(const OracleCache& cache, const Case& c, const VerifyRows& verify) {
  // A list of rows that memory cannot hold is not made.
  if (host_bytes_needed(c, spec_of(c), verify) > available_host_bytes()) return false;
  return fs::exists(cache.path_of(c, choose_rows(c, verify)));
}

void print_plans(const std::vector<Task>& tasks, Device& device, const Ceilings& ceilings, const Measure& measure,
                 const RunOptions& options) {
  const OracleCache cache(options.oracle_cache);
  Estimate estimate(measure, device.facts().backend, options.prove);
  fmt::print("{:<24} {:>13} {:>12} {:>12} {:>12} {:>9} {:>8} {:>10}  case\n", "variant", "compulsory MB", "modelled MB",
             "workspace MB", "prepared MB", "GFLOP", "launches", "floor us");
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    const OpSpec spec = spec_of(task.c);
    const Known<double> floor = floor_of(task.c, spec, ceilings);
    std::vector<Plan> plans;
    for (const std::string& name : task.variants) {
      try {
        plans.push_back(plan_variant(registry(), task.c, name, device.target()));
        print_plan(task.c, spec, name, plans.back(), floor);
      } catch (const Unsupported& limit) {
        fmt::print("{:<24} unsupported: {}  {}\n", name, limit.what(), case_id(task.c));
        estimate.add_unsupported();
      }
    }
    if (plans.empty()) continue;
    const std::size_t rows = plans.size();
    add_witness(plans, task, measure, device);
    estimate.add({.c = task.c,
                  .plans = plans,
                  .rows = rows,
                  .has_control = has_control(i),
                  .floor_us = floor,
                  .has_expected_rows = has_expected_rows(cache, task.c, measure.verify)});
  }
  fmt::print(
      "compulsory MB: each input of the op read once, each output written once; modelled MB: what the plan's steps "
      "read and write; floor: from a cold cache, by ceilings that were probed just now.\n\n{}",
      estimate.text(device.free_bytes(), available_host_bytes()));
}

// A case's expected rows, and its mutants', from the cache or computed and put there.
class AheadOfRun {
 public:
  AheadOfRun(const Case& c, const VerifyRows& verify, const OracleCache& cache)
      : case_(c), rows_(choose_rows(c, verify)), cache_(cache) {
    known_ = cache.load(c, rows_, expected_);
    if (known_) return;
    expected_ = compute_expected(c, inputs(), rows_);
    cache.save(c, expected_);
  }

  std::string summary() const { return fmt::format("{} rows {}", rows_.size(), known_ ? "already there" : "computed"); }

  // The check of the sampled rows alone: without a variant there is nothing to compare the others with.
  std::vector<Mutant> prove() {
    std::optional<WrongRows> wrong = load_wrong_rows(cache_, case_, rows_);
    if (!wrong) {
      wrong = compute_wrong_rows(
          case_, inputs(), [](const Case& c) { return std::make_unique<DrawnSource>(c); }, rows_);
      save_wrong_rows(cache_, case_, *wrong);
    }
    return try_mutants(
        case_, expected_, *wrong, exact_outputs(case_, expected_),
        {.failure = [&](const std::vector<Output>& outputs) { return judge(case_, outputs, expected_).failure; }});
  }

 private:
  const InputSet& inputs() {
    if (inputs_.empty()) inputs_ = read_inputs(spec_of(case_), DrawnSource(case_));
    return inputs_;
  }

  const Case& case_;
  std::vector<std::int64_t> rows_;
  const OracleCache& cache_;
  Expected expected_;
  bool known_ = false;
  InputSet inputs_;
};

// "13 mutants rejected, 2 equivalent, 1 let through"
std::string outcome_of(const std::vector<Mutant>& mutants) {
  const auto count = [&](Outcome outcome) {
    return std::count_if(mutants.begin(), mutants.end(), [&](const Mutant& m) { return m.outcome == outcome; });
  };
  return fmt::format("{} mutants rejected, {} equivalent, {} let through", count(Outcome::rejected),
                     count(Outcome::equivalent), count(Outcome::let_through));
}

}  // namespace

std::unique_ptr<Device> open_device(Backend backend, int index) {
  try {
    return backend == Backend::cuda ? open_cuda_device(index) : open_cpu_device();
  } catch (const std::exception& failure) {
    throw UsageError(failure.what());
  }
}

Backend backend_of(const std::string& name) {
  if (name == "cpu") return Backend::cpu;
  if (name == "cuda") return Backend::cuda;
  return cuda_device_count() > 0 ? Backend::cuda : Backend::cpu;
}

std::vector<Task> tasks_of(const Config& config, Backend backend, const std::vector<std::string>& filters) {
  std::vector<Task> tasks;
  for (const SweepCase& entry : config.cases) {
    Task task{.c = entry.c, .variants = {}};
    const std::vector<std::string> names =
        entry.variants.empty() ? default_variants(registry(), entry.c.op, backend) : entry.variants;
    for (const std::string& name : names) {
      if (matches(filters, case_id(entry.c), name)) task.variants.push_back(name);
    }
    if (!task.variants.empty()) tasks.push_back(std::move(task));
  }
  if (tasks.empty()) throw no_match(filters, config);
  return tasks;
}

ExitCode exit_code(const std::vector<std::string>& verdicts) {
  const std::set<std::string> seen(verdicts.begin(), verdicts.end());
  const auto any = [&](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return seen.count(name) != 0; });
  };
  if (any({"error", "crashed", "timeout"})) return kDidNotRun;
  if (any({"fail", "no_power"})) return kCheckFailed;
  return any({"pass"}) ? kPassed : kDidNotRun;
}

int run(const RunOptions& options) {
  const Backend backend = backend_of(options.backend);
  const Config config = load_config(options.config, backend);
  const std::vector<Task> tasks = tasks_of(config, backend, options.filters);
  const std::unique_ptr<Device> device = open_device(backend, options.device);
  const auto probe = [&](const std::function<void(const std::string&)>& note) {
    return probe_ceilings(*device, registry(), config.measure.load, product_dtypes(tasks), note);
  };
  if (options.dry_run) {
    print_plans(tasks, *device, probe([](const std::string&) {}), config.measure, options);
    return kPassed;
  }
  check_flags(options);
  const fs::path folder = claim_output(options, config);
  RecordFile records(folder / "results.jsonl");
  const InterruptHint hint(folder);
  for (const std::string& warning : device->facts().warnings) {
    std::fputs(fmt::format("warning: {}\n", warning).c_str(), stderr);
  }

  const OracleCache cache(options.oracle_cache);
  const double start = steady_seconds();
  Progress progress(tasks.size(), isatty(STDERR_FILENO) != 0, options.quiet);
  Ceilings ceilings = probe([&](const std::string& what) { progress.note(what); });
  std::map<std::string, double> stage_seconds = {{"ceilings", steady_seconds() - start}};
  Json header = header_of(options, config, device->facts());
  header["ceilings"] = ceilings.to_json();
  records.write(header);
  CaseContext context{
      .device = *device,
      .variants = registry(),
      .measure = config.measure,
      .oracle_cache = cache,
      .source = [](const Case& c) { return std::make_unique<DrawnSource>(c); },
      .note = [&](const std::string& what) { progress.note(what); },
      .dump = options.dump,
      .repro = [&](const Case& c, const std::string& variant) { return repro_command(options, backend, c, variant); },
      .ceilings = &ceilings,
      .prove = options.prove};
  const Range range("run " + config.name);
  std::vector<Row> rows;
  std::vector<Control> controls;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    progress.begin_case(case_id(task.c));
    context.control = has_control(i);
    CaseResult result = run_case(task.c, task.variants, context);
    if (!result.lost.empty()) context.lost = result.lost;
    for (const auto& [stage, seconds] : result.stage_seconds) stage_seconds[stage] += seconds;
    controls.insert(controls.end(), result.controls.begin(), result.controls.end());
    for (const Row& row : result.rows) ceilings.raise(row);
    std::vector<Json> lines;
    for (Row& row : result.rows) {
      ceilings.apply_to(row);
      lines.push_back(to_json(row));
      records.write(lines.back());
      rows.push_back(std::move(row));
    }
    progress.end_case(outcome_of(lines));
  }
  stage_seconds["all"] = steady_seconds() - start;
  complete(records, std::move(header), ceilings, rows, controls, stage_seconds);
  return finish(options, folder, rows);
}

int precompute_oracle(const RunOptions& options) {
  const Backend backend = options.backend == "auto" ? Backend::cuda : backend_of(options.backend);
  const Config config = load_config(options.config, backend);
  require_folder("--oracle-cache", options.oracle_cache);
  const OracleCache cache(options.oracle_cache);
  Progress progress(config.cases.size(), isatty(STDERR_FILENO) != 0, options.quiet);
  std::size_t matched = 0;
  bool left_out = false;
  std::vector<std::string> powerless;  // cases, and what their check lets through
  for (const SweepCase& entry : config.cases) {
    std::vector<std::string> names = entry.variants.empty() ? registry().names(backend) : entry.variants;
    names.emplace_back();  // a build without CUDA knows no variant of it, but every case
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return matches(options.filters, case_id(entry.c), name); })) {
      continue;
    }
    ++matched;
    progress.begin_case(case_id(entry.c));
    const std::int64_t needed = host_bytes_needed(entry.c, spec_of(entry.c), config.measure.verify, options.prove);
    const std::int64_t available = available_host_bytes();
    if (needed > available) {
      left_out = true;
      progress.end_case(fmt::format("left out: needs {} bytes of host memory, {} are available", needed, available));
      continue;
    }
    AheadOfRun ahead(entry.c, config.measure.verify, cache);
    std::string outcome = ahead.summary();
    if (options.prove) {
      const std::vector<Mutant> mutants = ahead.prove();
      outcome += "; " + outcome_of(mutants);
      const std::string names = let_through(mutants);
      if (!names.empty()) powerless.push_back(fmt::format("no power: {}: {}\n", case_id(entry.c), names));
    }
    progress.end_case(outcome);
  }
  if (matched == 0) throw no_match(options.filters, config);
  for (const std::string& line : powerless) std::fputs(line.c_str(), stderr);
  fmt::print("{}\n", fs::absolute(options.oracle_cache).string());
  if (left_out) return kDidNotRun;
  return powerless.empty() ? kPassed : kCheckFailed;
}

}  // namespace fusebench
