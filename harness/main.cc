#include <fcntl.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/compare.h"
#include "harness/config.h"
#include "harness/doctor.h"
#include "harness/init.h"
#include "harness/list.h"
#include "harness/profile.h"
#include "harness/run.h"
#include "harness/shell.h"
#include "reports/markdown.h"
#include "reports/write.h"

namespace {

using fusebench::RunOptions;
using fusebench::shell_quoted;
using fusebench::UsageError;

void complain(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

// Where one of them is closed, a file that the run opens would take its place, and be written by what is printed.
void keep_standard_streams_open() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) == -1) (void)!open("/dev/null", O_RDWR);
  }
}

std::filesystem::path default_oracle_cache() {
  if (const char* folder = std::getenv("FUSEBENCH_ORACLE_CACHE")) return folder;
  return ".cache/oracle";
}

void add_sweep_options(CLI::App& command, RunOptions& options) {
  command.add_option("config", options.config, "the sweep, a YAML file (docs/configuration.md)")->required();
  command
      .add_option("--backend", options.backend,
                  "auto: CUDA where there is a device; oracle takes CUDA's dtypes even without")
      ->check(CLI::IsMember({"auto", "cuda", "cpu"}))
      ->capture_default_str();
  command.add_option("--filter", options.filters, "keep rows whose case id, variant or case id/variant matches a glob");
  command.add_option("--oracle-cache", options.oracle_cache, "folder of expected rows; also FUSEBENCH_ORACLE_CACHE")
      ->capture_default_str();
  command.add_flag(
      "--prove", options.prove,
      "try the check on outputs that are wrong on purpose; a row whose check lets one through is no_power");
  command.add_flag("--quiet", options.quiet, "no progress");
}

void add_doctor_options(CLI::App& command, fusebench::DoctorOptions& options) {
  command.add_option("--backend", options.backend, "auto: CUDA where there is a device")
      ->check(CLI::IsMember({"auto", "cuda", "cpu"}))
      ->capture_default_str();
  command.add_option("--device", options.device, "CUDA device")->capture_default_str();
  command.add_flag("--json", options.json, "print JSON");
  CLI::Option* noise = command.add_flag(
      "--noise", options.noise, "learn how far medians lie apart between processes, and keep it for this device");
  command.add_option("--restarts", options.restarts, "processes to learn it from, three or more")
      ->needs(noise)
      ->capture_default_str();
  command.add_option("--sweep", options.sweep, "what they run; default configs/noise.yaml, on the CPU noise_cpu.yaml")
      ->needs(noise);
  command.footer("Exit code: 0 measuring will work, 2 bad usage, 3 it will not, or a run for --noise failed.");
}

void add_profile_options(CLI::App& command, fusebench::ProfileOptions& options) {
  using fusebench::CacheMode;
  command.add_option("config", options.config, "the sweep, a YAML file (docs/configuration.md)")->required();
  command.add_option("--backend", options.backend, "auto: CUDA where there is a device")
      ->check(CLI::IsMember({"auto", "cuda", "cpu"}))
      ->capture_default_str();
  command.add_option("--device", options.device, "CUDA device")->capture_default_str();
  command.add_option("--filter", options.filters, "keep rows whose case id, variant or case id/variant matches a glob");
  command.add_option("--launches", options.launches, "of each row")->capture_default_str();
  command
      .add_option_function<std::string>(
          "--cache",
          [&options](const std::string& mode) { options.cache = mode == "hot" ? CacheMode::hot : CacheMode::cold; },
          "cold: L2 flushed before each launch; hot: not")
      ->check(CLI::IsMember({"cold", "hot"}))
      ->default_str("cold");
  command.add_flag("--graph", options.graph, "replay each row as a CUDA graph");
  command.add_flag("--launch", options.launch, "launch also where no profiler is seen");
  command.add_flag("--one-range", options.one_range, "one profiler range around all launches, not one around each");
}

// Google Benchmark reads its own flags; anything else that is left over is a mistake.
std::vector<std::string> benchmark_flags(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const std::string& extra : command.remaining()) {
    if (extra.rfind("--benchmark_", 0) != 0) throw UsageError(fmt::format("{}: unknown argument; see --help", extra));
    flags.push_back(extra);
  }
  return flags;
}

int report(const std::filesystem::path& folder, bool markdown) {
  if (!std::filesystem::exists(folder / "results.jsonl")) {
    throw UsageError(
        fmt::format("{}: holds no results.jsonl; name the folder that `fusebench run` wrote", folder.string()));
  }
  if (markdown) {
    fmt::print("{}", fusebench::reports::run_markdown(fusebench::reports::read_records(folder / "results.jsonl")));
    return fusebench::kPassed;
  }
  for (const std::string& note : fusebench::reports::write_reports(folder).notes) complain("note: " + note);
  fmt::print("{}\n", (folder / "report.html").string());
  return fusebench::kPassed;
}

int dispatch(int argc, char** argv) {
  CLI::App app("fusebench: what did fusing buy, in HBM bytes and in microseconds, and is the answer still right?");
  app.require_subcommand(1);
  app.set_version_flag("--version", FUSEBENCH_VERSION);

  RunOptions options;
  options.oracle_cache = default_oracle_cache();
  options.command = shell_quoted(argv[0]);
  for (int i = 1; i < argc; ++i) options.command += " " + shell_quoted(argv[i]);

  CLI::App& run = *app.add_subcommand("run", "run a sweep and write its records and reports");
  add_sweep_options(run, options);
  run.add_option("-o,--output", options.output, "folder to write; default out/NAME-TIMESTAMP");
  run.add_flag("--overwrite", options.overwrite, "replace the records of the run that -o holds");
  run.add_option("--device", options.device, "CUDA device")->capture_default_str();
  run.add_option("--dump", options.dump, "write inputs, expected rows and outputs as NPY files into this folder");
  run.add_flag("--dry-run", options.dry_run, "list rows, and tell the memory and time they need; run nothing");
  run.allow_extras();
  run.footer(
      "Arguments that begin with --benchmark_ (--benchmark_out=FILE, --benchmark_format=json) go to Google Benchmark,\n"
      "which then reports the run's samples. Exit code: 0 passed, 1 a check failed, 2 bad usage, 3 a row did not run.");

  CLI::App& oracle = *app.add_subcommand("oracle", "compute a sweep's expected rows ahead, without a GPU");
  add_sweep_options(oracle, options);

  std::filesystem::path folder;
  CLI::App& rebuild =
      *app.add_subcommand("report", "rebuild CSV and HTML from a run's records, or print them as markdown");
  rebuild.add_option("folder", folder, "what `fusebench run` wrote")->required();
  bool markdown = false;
  rebuild.add_flag("--markdown", markdown, "print the run for a pull request or an issue, and write nothing");

  fusebench::CompareCommand comparison;
  CLI::App& compare =
      *app.add_subcommand("compare", "what a run changed against another, row by row (docs/compare.md)");
  compare.add_option("base", comparison.base, "the run to compare with: its folder or results.jsonl")->required();
  compare.add_option("new", comparison.current, "the run to judge: its folder or results.jsonl")->required();
  compare.add_option("--threshold", comparison.threshold_percent, "a row slower by more regresses")
      ->option_text("PERCENT [3]");
  CLI::Option& json = *compare.add_flag("--json", comparison.json, "print everything as one JSON object");
  compare.add_flag("--markdown", comparison.markdown, "print a comment for a pull request")->excludes(&json);
  compare.add_option("--html", comparison.html, "also write the comparison as a page into this file");
  compare.add_flag("--force", comparison.force, "compare runs of different devices");
  compare.footer(
      "Exit code: 0 no regression, 2 bad usage or different devices, 3 no row in common, 4 a row is slower than base "
      "by\n"
      "more than the threshold or its verdict is no longer pass.");

  std::filesystem::path sweep = "sweep.yaml";
  CLI::App& init = *app.add_subcommand("init", "write a commented sweep to start from");
  init.add_option("file", sweep, "a file that is not there yet")->option_text("FILE [sweep.yaml]");

  CLI::App& list = *app.add_subcommand("list", "ops, variants, models and what this build and machine support");

  fusebench::DoctorOptions doctor_options;
  CLI::App& doctor = *app.add_subcommand("doctor", "whether measuring will work here, and what would make it better");
  add_doctor_options(doctor, doctor_options);

  fusebench::ProfileOptions profile_options;
  CLI::App& profile = *app.add_subcommand("profile", "launch chosen rows alone for ncu or nsys, and print how");
  add_profile_options(profile, profile_options);

  try {
    app.parse(argc, argv);
    options.benchmark_flags = benchmark_flags(run);
  } catch (const CLI::CallForHelp&) {
    return app.exit(CLI::CallForHelp());
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return fusebench::kPassed;
  } catch (const CLI::ParseError& error) {
    throw UsageError(fmt::format("{}; see --help", error.what()));
  }
  if (run.parsed()) return fusebench::run(options);
  if (oracle.parsed()) return fusebench::precompute_oracle(options);
  if (rebuild.parsed()) return report(folder, markdown);
  if (compare.parsed()) return fusebench::compare_runs(comparison);
  if (init.parsed()) fusebench::init(sweep, shell_quoted(argv[0]));
  if (list.parsed()) fusebench::print_list();
  if (profile.parsed()) return fusebench::profile(profile_options);
  if (doctor.parsed()) return fusebench::doctor(doctor_options);
  return fusebench::kPassed;
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_streams_open();
  try {
    const int code = dispatch(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    complain("fusebench: the standard output cannot be written; is the disk full?");
    return code == fusebench::kPassed ? fusebench::kDidNotRun : code;
  } catch (const fusebench::ConfigError& error) {
    complain(error.what());
    return fusebench::kBadUsage;
  } catch (const UsageError& error) {
    complain(fmt::format("fusebench: {}", error.what()));
    return fusebench::kBadUsage;
  } catch (const std::exception& error) {
    complain(fmt::format("fusebench: {}", error.what()));
    return fusebench::kDidNotRun;
  }
}
