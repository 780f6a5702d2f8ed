// The program as a user runs it: exit codes, messages, files.
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/files.h"

namespace fs = std::filesystem;
using fusebench::testing::read_file;
using fusebench::testing::TempFolder;

namespace {

struct Outcome {
  int code = -1;
  std::string out;  // stdout and stderr
};

Outcome execute(const std::string& arguments) {
  const std::string command = std::string(FUSEBENCH_BINARY) + " " + arguments + " 2>&1 </dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) outcome.out.append(buffer.data(), n);
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

const char* const kSweep = R"(name: tiny
measure: {warmup: 1, samples: 3}
sweep:
  - {op: [rmsnorm, attention], dim: 64, heads: 4, batch: 2, seq: 5}
)";

std::string run(const TempFolder& folder, const std::string& config, const std::string& more = "") {
  return "run " + config + " --backend cpu --oracle-cache " + (folder / "oracle").string() + " " + more;
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("a sweep writes records, CSV and a page, and passes", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const fs::path out = folder / "out";
  const Outcome outcome = execute(run(folder, config, "-o " + out.string()));
  INFO(outcome.out);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring((out / "report.html").string()));
  const std::string records = read_file(out / "results.jsonl");
  CHECK(lines_of(records) == 1 + 2 * 3);
  const auto header = nlohmann::json::parse(records.substr(0, records.find('\n')));
  CHECK(header["name"] == "tiny");
  CHECK(header["schema"] == 1);
  CHECK(header["command"].get<std::string>().find("--backend cpu") != std::string::npos);
  CHECK(header["ceilings"].is_null());
  CHECK(lines_of(read_file(out / "results.csv")) == 1 + 2 * 3);
  CHECK(fs::exists(out / "steps.csv"));
  CHECK(fs::exists(out / "report.html"));

  const auto row = nlohmann::json::parse(records.substr(records.rfind('\n', records.size() - 2) + 1));
  const Outcome repeated = execute(row["repro"].get<std::string>().substr(10) + " -o " + (folder / "again").string());
  INFO(repeated.out);
  CHECK(repeated.code == 0);
  CHECK(lines_of(read_file(folder / "again/results.jsonl")) == 2);
}

TEST_CASE("another run's records are neither overwritten nor lost", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const std::string out = "-o " + (folder / "out").string();
  REQUIRE(execute(run(folder, config, out)).code == 0);
  const std::string before = read_file(folder / "out/results.jsonl");
  const Outcome refused = execute(run(folder, config, out));
  CHECK(refused.code == 2);
  CHECK_THAT(refused.out, ContainsSubstring("--overwrite"));
  CHECK(lines_of(refused.out) == 1);
  CHECK(read_file(folder / "out/results.jsonl") == before);
  // A broken config is found before the old records are touched, also with --overwrite.
  const std::string broken = folder.write("broken.yaml", "name: tiny\nsweep:\n  - {op: rmsnrm, dim: 64}\n");
  CHECK(execute(run(folder, broken, out + " --overwrite")).code == 2);
  CHECK(read_file(folder / "out/results.jsonl") == before);
  CHECK(execute(run(folder, config, out + " --overwrite")).code == 0);
  CHECK(read_file(folder / "out/results.jsonl") != before);
}

TEST_CASE("mistakes get one clear line and exit code 2, and nothing is written", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const fs::path out = folder / "out";
  const auto refused = [&](const std::string& arguments, const std::string& says) {
    const Outcome outcome = execute(arguments);
    INFO(arguments << "\n" << outcome.out);
    CHECK(outcome.code == 2);
    CHECK(lines_of(outcome.out) == 1);
    CHECK_THAT(outcome.out, ContainsSubstring(says));
    CHECK_FALSE(fs::exists(out));
  };
  const std::string to = "-o " + out.string();
  refused(run(folder, (folder / "missing.yaml").string(), to), "missing.yaml");
  refused(run(folder, folder.write("unknown.yaml", "name: x\nsweep:\n  - {op: rmsnorm, dmi: 64}\n"), to), "dim");
  refused(run(folder, config, to + " --filter 'no such row'"), "no row matches");
  refused(run(folder, config, to + " --bogus"), "--bogus");
  refused(run(folder, config, "-o " + config), "is a file");
  refused("run " + config + " --backend tpu " + to, "tpu");
  refused("run", "config");
  refused("", "subcommand");
  refused("report " + (folder / "").string(), "results.jsonl");
  const Outcome cuda = execute("run " + config + " --backend cuda " + to);
  if (cuda.code != 0) CHECK(lines_of(cuda.out) == 1);
}

TEST_CASE("filters keep the rows they name", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const fs::path out = folder / "out";
  CHECK(execute(run(folder, config, "-o " + out.string() + " --filter fused --filter 'attention*/naive'")).code == 0);
  const std::string records = read_file(out / "results.jsonl");
  CHECK(lines_of(records) == 1 + 3);
}

TEST_CASE("a dry run lists rows and bytes and writes nothing", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const Outcome outcome = execute(run(folder, config, "--dry-run -o " + (folder / "out").string()));
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("attention/fp32/"));
  CHECK_FALSE(fs::exists(folder / "out"));
}

TEST_CASE("the oracle is computed ahead and read by the run", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const std::string cache = " --oracle-cache " + (folder / "oracle").string();
  CHECK(execute("oracle " + config + " --backend cpu" + cache).code == 0);
  CHECK_THAT(execute("oracle " + config + " --backend cpu" + cache).out, ContainsSubstring("already there"));
  CHECK(execute(run(folder, config, "-o " + (folder / "out").string())).code == 0);
}

TEST_CASE("reports are rebuilt from the records alone", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const fs::path out = folder / "out";
  REQUIRE(execute(run(folder, config, "-o " + out.string())).code == 0);
  const std::string csv = read_file(out / "results.csv");
  fs::remove(out / "results.csv");
  fs::remove(out / "report.html");
  CHECK(execute("report " + out.string()).code == 0);
  CHECK(read_file(out / "results.csv") == csv);
  CHECK(fs::exists(out / "report.html"));
}

TEST_CASE("Google Benchmark reports the run's samples", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const fs::path json = folder / "benchmark.json";
  const Outcome outcome =
      execute(run(folder, config, "-o " + (folder / "out").string() + " --benchmark_out=" + json.string()));
  INFO(outcome.out);
  CHECK(outcome.code == 0);
  const auto report = nlohmann::json::parse(read_file(json));
  CHECK(report["benchmarks"].size() >= 6);
}

TEST_CASE("list names ops, variants, models and devices", "[cli]") {
  const Outcome outcome = execute("list");
  CHECK(outcome.code == 0);
  for (const char* name : {"add_rmsnorm", "naive", "eigen", "fused", "llama3-8b", "seed", "cpu:"}) {
    CHECK_THAT(outcome.out, ContainsSubstring(name));
  }
}
