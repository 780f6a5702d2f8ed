// The program as a user runs it: exit codes, messages, files.
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "harness/shell.h"
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
  - {op: [rmsnorm, attention], dim: 64, heads: 4, batch: 2, seq: 5, variants: [naive, eigen, fused]}
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
  CHECK(header["ceilings"]["bandwidth_gbps"]["value"] > 0);
  CHECK(header["measured_s"] > 0);
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

TEST_CASE("a dry run tells memory and time, what does not fit, and what to do where nothing would run", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const std::string more = "--dry-run -o " + (folder / "out").string();
  const Outcome fits = execute(run(folder, config, more));
  INFO(fits.out);
  CHECK_THAT(fits.out, ContainsSubstring("\n6 rows of 2 cases\n"));
  CHECK_THAT(fits.out, ContainsSubstring("memory: up to "));
  CHECK_THAT(fits.out, ContainsSubstring(" are free\n"));
  // Two cases of three rows, both with an A/A control: 8 times 5 s, and a fifth for 6 rows' steps.
  CHECK_THAT(fits.out, ContainsSubstring(" to 46 s of measuring (max_seconds, 5 s,"));
  CHECK_THAT(fits.out, ContainsSubstring("the expected rows of 2 cases, which `fusebench oracle` computes ahead"));
  CHECK(fits.out.find("does not fit") == std::string::npos);
  REQUIRE(execute("oracle " + config + " --backend cpu --oracle-cache " + (folder / "oracle").string()).code == 0);
  CHECK_THAT(execute(run(folder, config, more)).out, ContainsSubstring("all expected rows are in the oracle cache"));

  const std::string large =
      folder.write("large.yaml", "name: x\nsweep:\n  - {op: rmsnorm, dim: 65536, seq: 1000000000, dtype: fp32}\n");
  const Outcome too_large = execute(run(folder, large, more));
  INFO(too_large.out);
  CHECK(too_large.code == 0);
  CHECK_THAT(too_large.out, ContainsSubstring("does not fit, and will have unsupported rows: rmsnorm/fp32/d65536"));
  const std::string none =
      folder.write("none.yaml", "name: x\nsweep:\n  - {op: rmsnorm, dim: 64, dtype: bf16, variants: [eigen]}\n");
  CHECK_THAT(execute(run(folder, none, more)).out, ContainsSubstring("Nothing would run here: `fusebench list`"));
}

TEST_CASE("init writes a sweep that loads and runs, names what comes next, and overwrites nothing", "[cli]") {
  const TempFolder folder;
  const fs::path file = folder / "my-first.yaml";
  const Outcome made = execute("init " + file.string());
  INFO(made.out);
  CHECK(made.code == 0);
  CHECK_THAT(made.out, ContainsSubstring("run " + file.string() + " --dry-run"));
  const std::string sweep = read_file(file);
  CHECK_THAT(sweep, ContainsSubstring("\nname: my-first "));
  const Outcome listed = execute(run(folder, file, "--dry-run"));
  INFO(listed.out);
  CHECK(listed.code == 0);
  CHECK_THAT(listed.out, ContainsSubstring("\n22 rows of 7 cases\n"));
  CHECK(listed.out.find("does not fit") == std::string::npos);
  const Outcome ran = execute(run(folder, file, "--quiet --filter 'rmsnorm*' -o " + (folder / "out").string()));
  INFO(ran.out);
  CHECK(ran.code == 0);

  // What is commented out is right, too.
  std::string all = sweep;
  for (std::size_t at = 0; (at = all.find("\n  # - op", at)) != std::string::npos;) all.replace(at, 5, "\n  ");
  for (std::size_t at = 0; (at = all.find("\n  #   ", at)) != std::string::npos;) all.replace(at, 5, "\n  ");
  const Outcome whole = execute(run(folder, folder.write("all.yaml", all), "--dry-run"));
  INFO(whole.out);
  CHECK(whole.code == 0);
  CHECK_THAT(whole.out, ContainsSubstring("block/fp32/d4096"));

  const Outcome refused = execute("init " + file.string());
  CHECK(refused.code == 2);
  CHECK(lines_of(refused.out) == 1);
  CHECK_THAT(refused.out, ContainsSubstring("is there already; name another file"));
  CHECK(read_file(file) == sweep);
  const Outcome nowhere = execute("init " + (folder / "none/x.yaml").string());
  CHECK(nowhere.code == 2);
  CHECK(lines_of(nowhere.out) == 1);
  // A file's name that cannot name a run.
  CHECK(execute("init " + fusebench::shell_quoted((folder / "it's odd.yaml").string())).code == 0);
  CHECK_THAT(read_file(folder / "it's odd.yaml"), ContainsSubstring("\nname: sweep "));
  for (const char* odd : {"null.yaml", ".inf.yaml", "---.yaml", "-.yaml"}) {
    const std::string quoted = fusebench::shell_quoted((folder / odd).string());
    CHECK(execute("init " + quoted).code == 0);
    CHECK(execute("run " + quoted + " --backend cpu --dry-run --filter '*/naive'").code == 0);
  }
  CHECK(execute("init a b").code == 2);
}

TEST_CASE("report --markdown prints the run and writes nothing", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const fs::path out = folder / "out";
  REQUIRE(execute(run(folder, config, "-o " + out.string())).code == 0);
  fs::remove(out / "report.html");
  const Outcome printed = execute("report " + out.string() + " --markdown");
  CHECK(printed.code == 0);
  CHECK(printed.out.starts_with("### fusebench tiny: 6 rows: 6 pass\n"));
  CHECK_THAT(printed.out, ContainsSubstring("| speed-up over eigen |"));
  CHECK_FALSE(fs::exists(out / "report.html"));
  CHECK(execute("report " + (folder / "none").string() + " --markdown").code == 2);
}

TEST_CASE("the oracle is computed ahead and read by the run", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const std::string cache = " --oracle-cache " + (folder / "oracle").string();
  CHECK(execute("oracle " + config + " --backend cpu" + cache).code == 0);
  CHECK_THAT(execute("oracle " + config + " --backend cpu" + cache).out, ContainsSubstring("already there"));
  CHECK(execute(run(folder, config, "-o " + (folder / "out").string())).code == 0);
}

TEST_CASE("--prove tries the check on mutants, in a run and ahead of it", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const Outcome ahead =
      execute("oracle " + config + " --prove --backend cpu --oracle-cache " + (folder / "oracle").string());
  INFO(ahead.out);
  CHECK(ahead.code == 0);
  CHECK_THAT(ahead.out, ContainsSubstring("mutants rejected, 0 equivalent, 0 let through"));
  const Outcome outcome = execute(run(folder, config, "--prove -o " + (folder / "out").string()));
  INFO(outcome.out);
  CHECK(outcome.code == 0);
  const std::string records = read_file(folder / "out/results.jsonl");
  const auto row = nlohmann::json::parse(records.substr(records.rfind('\n', records.size() - 2) + 1));
  CHECK(row["mutants_tried"] == row["mutants_rejected"]);
  CHECK(row["mutants_tried"].get<int>() > 0);
  CHECK_THAT(row["repro"].get<std::string>(), ContainsSubstring("--prove"));

  // With the seed's inputs one key among 128 does not show in bf16.
  const std::string weak = folder.write("weak.yaml", R"(name: weak
sweep:
  - {op: block, dtype: bf16, inputs: seed, dim: 256, hidden: 704, heads: 4, kv_heads: 2, batch: 2, seq: 1, past: 127}
)");
  const Outcome powerless =
      execute("oracle " + weak + " --prove --quiet --oracle-cache " + (folder / "oracle").string());
  INFO(powerless.out);
  CHECK(powerless.code == 1);
  CHECK_THAT(powerless.out, ContainsSubstring("no power: block/bf16/"));
  CHECK_THAT(powerless.out, ContainsSubstring("out: one key less"));
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

TEST_CASE("doctor tells what is there, and its exit code whether measuring will work", "[cli]") {
  const Outcome cpu = execute("doctor --backend cpu");
  CHECK(cpu.code == 0);
  CHECK_THAT(cpu.out, ContainsSubstring("measuring will work"));
  const Outcome cuda = execute("doctor --backend cuda --json");
  const auto json = nlohmann::json::parse(cuda.out);
  CHECK(json["measuring_will_work"] == (cuda.code == 0));
  CHECK((cuda.code == 0 || cuda.code == 3));
  for (const auto& finding : json["findings"]) CHECK(finding.size() == 4);
  CHECK(execute("doctor --restarts 5").code == 2);
  CHECK(execute("doctor --noise --restarts 2").code == 2);
}

TEST_CASE("doctor learns a noise table, which runs then have in their header", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  REQUIRE(setenv("FUSEBENCH_NOISE", (folder / "noise").c_str(), 1) == 0);
  const auto header_of = [&](const std::string& name) {
    REQUIRE(execute(run(folder, config, "--quiet -o " + (folder / name).string())).code == 0);
    const std::string records = read_file(folder / (name + "/results.jsonl"));
    return nlohmann::json::parse(records.substr(0, records.find('\n')));
  };
  const auto before = header_of("before");
  CHECK(before["noise"].is_null());
  CHECK_THAT(before["noise_reason"].get<std::string>(), ContainsSubstring("fusebench doctor --noise"));
  const Outcome learned = execute("doctor --noise --restarts 3 --backend cpu --sweep " + config);
  INFO(learned.out);
  CHECK(learned.code == 0);
  const auto after = header_of("after");
  CHECK(after["noise_reason"].is_null());
  CHECK(after["noise"]["restarts"] == 3);
  CHECK(after["noise"]["classes"].size() == 8);
  CHECK(after["noise"]["a_a"]["classes"].size() == 8);

  // A run that fails stops the learning, with the end of what it said.
  const std::string broken = folder.write("none.yaml", "name: none\nsweep:\n  - {op: rmsnorm, dim: 64, dtype: bf16}\n");
  const Outcome failed = execute("doctor --noise --backend cpu --sweep " + broken);
  CHECK(failed.code == 3);
  CHECK_THAT(failed.out, ContainsSubstring("ended with code 3"));
  unsetenv("FUSEBENCH_NOISE");
}

TEST_CASE("profile prints what it would launch, and launches it by the printed command", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const Outcome printed = execute("profile " + config + " --backend cpu --filter 'attention*/fused' --launches 2");
  INFO(printed.out);
  CHECK(printed.code == 0);
  CHECK_THAT(printed.out, ContainsSubstring("# range 1 to 2: attention/fp32/"));
  const std::size_t begin = printed.out.find('\n') + 1;
  const std::string command = printed.out.substr(begin, printed.out.find('\n', begin) - begin);
  const Outcome launched = execute(command.substr(command.find(" profile ") + 1));
  INFO(launched.out);
  CHECK(launched.code == 0);
  CHECK_THAT(launched.out, ContainsSubstring("launch 2 of 2"));
  CHECK(lines_of(launched.out) == 2);
  CHECK(execute("profile " + config + " --backend cpu --launch --graph").code == 3);
  for (const char* mistake : {"--cache warm", "--launches 0", "--filter nothing"}) {
    CHECK(execute("profile " + config + " --backend cpu " + mistake).code == 2);
  }
}

TEST_CASE("a repro command can be pasted whatever the config is called", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("it's \"odd\" $HOME.yaml", kSweep);
  const fs::path out = folder / "out";
  const Outcome outcome = execute(run(folder, fusebench::shell_quoted(config), "-o " + out.string()));
  INFO(outcome.out);
  REQUIRE(outcome.code == 0);
  const std::string records = read_file(out / "results.jsonl");
  const auto row = nlohmann::json::parse(records.substr(records.rfind('\n', records.size() - 2) + 1));
  const std::string to = " -o " + (folder / "again").string();
  CHECK(execute(row["repro"].get<std::string>().substr(10) + to).code == 0);
  const auto header = nlohmann::json::parse(records.substr(0, records.find('\n')));
  const std::string command = header["command"];
  CHECK(execute(command.substr(command.find(" run ") + 1) + " --overwrite").code == 0);
}

TEST_CASE("closed and full standard streams harm neither the run nor its records", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const auto records_with = [&](const std::string& name, const std::string& redirection) {
    // The last redirection wins over execute's own.
    const std::string command =
        std::string(FUSEBENCH_BINARY) + " " + run(folder, config, "-o " + (folder / name).string()) + " " + redirection;
    CHECK(WEXITSTATUS(std::system(("exec >/dev/null 2>/dev/null; " + command).c_str())) ==
          (redirection == ">/dev/full" ? 3 : 0));
    return read_file(folder / (name + "/results.jsonl"));
  };
  for (const auto& [name, redirection] : {std::pair("closed", "2>&-"), std::pair("both", ">&- 2>&-"),
                                          std::pair("full", "2>/dev/full"), std::pair("out", ">/dev/full")}) {
    const std::string records = records_with(name, redirection);
    INFO(redirection);
    CHECK(lines_of(records) == 1 + 2 * 3);
    CHECK(records.find("[1/2]") == std::string::npos);
  }
}

TEST_CASE("runs that start in the same second have folders of their own", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const std::string one = std::string(FUSEBENCH_BINARY) + " " + run(folder, config, "--quiet") + " >/dev/null & ";
  REQUIRE(std::system(("cd " + folder.path().string() + " && { " + one + one + one + "wait; }").c_str()) == 0);
  int runs = 0;
  for (const auto& entry : fs::directory_iterator(folder / "out")) {
    ++runs;
    CHECK(lines_of(read_file(entry.path() / "results.jsonl")) == 1 + 2 * 3);
  }
  CHECK(runs == 3);
}

TEST_CASE("mistakes in Google Benchmark's flags and in folders are found before the run", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  for (const char* flag : {"--benchmark_format=xml", "--benchmark_out_format=xml", "--benchmark_time_unit=day",
                           "--benchmark_out=/nonexistent/x.json", "--benchmark_bogus=1", "--dump /proc/none"}) {
    const Outcome outcome = execute(run(folder, config, "-o " + (folder / "out").string() + " " + flag));
    INFO(flag << "\n" << outcome.out);
    CHECK(outcome.code == 2);
    CHECK(lines_of(outcome.out) == 1);
    CHECK_FALSE(fs::exists(folder / "out"));
  }
  const Outcome oracle = execute("oracle " + config + " --oracle-cache /proc/none");
  CHECK(oracle.code == 2);
  CHECK_THAT(oracle.out, ContainsSubstring("--oracle-cache /proc/none: is not writable"));
}

TEST_CASE("Google Benchmark's JSON has stdout for itself", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const fs::path json = folder / "stdout.json";
  const std::string command = std::string(FUSEBENCH_BINARY) + " " +
                              run(folder, config, "-o " + (folder / "out").string() + " --benchmark_format=json") +
                              " 2>/dev/null >" + json.string();
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(nlohmann::json::parse(read_file(json))["benchmarks"].size() >= 6);
}

TEST_CASE("an interrupted run leaves the records so far, and no report of the run that it replaced", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  const fs::path out = folder / "out";
  REQUIRE(execute(run(folder, config, "-o " + out.string())).code == 0);
  const std::string slow = folder.write("slow.yaml",
                                        "name: slow\nmeasure: {max_seconds: 60, samples: 100000}\nsweep:\n"
                                        "  - {op: rmsnorm, dim: 64, seq: [1, 2], dtype: fp16}\n"
                                        "  - {op: rmsnorm, dim: 64, seq: 1, dtype: fp32}\n");
  // Ended when its first two cases are there: the third takes a minute.
  const std::string file = (out / "results.jsonl").string();
  const fs::path said = folder / "said";
  const std::string command = std::string(FUSEBENCH_BINARY) + " " +
                              run(folder, slow, "--overwrite -o " + out.string()) + " >/dev/null 2>" + said.string() +
                              " & for i in $(seq 600); do grep -q '\"slow\"' " + file + " && [ $(wc -l <" + file +
                              ") -ge 7 ] && break; sleep 0.1; done; kill -TERM $!; wait $!";
  CHECK(WEXITSTATUS(std::system(command.c_str())) == 128 + SIGTERM);
  CHECK_THAT(read_file(said), ContainsSubstring("interrupted: rows that had ended are in " + file));
  CHECK_THAT(read_file(said), ContainsSubstring("fusebench report " + out.string()));
  CHECK(lines_of(read_file(out / "results.jsonl")) == 1 + 2 * 3);
  CHECK_FALSE(fs::exists(out / "results.csv"));
  CHECK(execute("report " + out.string()).code == 0);
  CHECK(lines_of(read_file(out / "results.csv")) == 1 + 2 * 3);
}

namespace {

// A run's records, of rows whose samples lie about the medians given.
std::string records(const std::string& uuid, const std::vector<std::pair<std::string, double>>& rows,
                    const std::string& verdict = "pass") {
  using Json = nlohmann::ordered_json;
  const Json one_class = {{"from_us", 0}, {"to_us", nullptr}, {"relative", 0.01}, {"pairs", 100}};
  Json header = {{"schema", 1}, {"name", "x"}, {"device", {{"name", "H200"}, {"uuid", uuid}}}, {"driver", "580"}};
  header["noise"]["classes"] = Json::array({one_class});
  std::string lines = header.dump() + "\n";
  for (const auto& [case_id, us] : rows) {
    Json row = {{"case_id", case_id}, {"variant", "fused"}, {"verdict", verdict}, {"median_us", us}};
    for (int i = 0; i < 50; ++i) row["samples_us"].push_back(us * (1 + 0.0005 * (i * 7 % 11 - 5)));
    lines += row.dump() + "\n";
  }
  return lines;
}

}  // namespace

TEST_CASE("compare: two runs of the same binary do not regress, as folder or file, whole or cut off", "[cli]") {
  const TempFolder folder;
  const std::string config = folder.write("tiny.yaml", kSweep);
  for (const char* name : {"a", "b"}) REQUIRE(execute(run(folder, config, "-o " + (folder / name).string())).code == 0);
  const std::string a = (folder / "a").string();
  const fs::path b = folder / "b/results.jsonl";
  const Outcome outcome = execute("compare " + a + " " + b.string());
  INFO(outcome.out);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("6 rows: "));
  CHECK_THAT(outcome.out, ContainsSubstring("no regression"));
  const std::string whole = read_file(b);
  const Outcome cut =
      execute("compare " + a + " " + folder.write("cut.jsonl", whole.substr(0, whole.size() - 100)).string());
  CHECK(cut.code == 0);
  CHECK_THAT(cut.out, ContainsSubstring("new: results.jsonl: line 7 is cut off"));
  CHECK_THAT(cut.out, ContainsSubstring("1 gone"));
}

TEST_CASE("compare: regressions beyond the threshold, and lost verdicts, have an exit code of their own", "[cli]") {
  const TempFolder folder;
  const std::string base = folder.write("base.jsonl", records("GPU-1", {{"a", 100}, {"b", 50}}));
  const std::string slow = folder.write("slow.jsonl", records("GPU-1", {{"a", 103}, {"b", 50}}));
  const std::string failed = folder.write("failed.jsonl", records("GPU-1", {{"a", 90}, {"b", 50}}, "fail"));
  const auto code = [&](const std::string& arguments) { return execute("compare " + arguments).code; };
  CHECK(code(base + " " + base) == 0);
  CHECK(code(base + " " + slow) == 0);  // slower, and within the threshold
  CHECK_THAT(execute("compare " + base + " " + slow).out, ContainsSubstring("2 rows: 1 slower, 1 same\n"));
  CHECK(code(base + " " + slow + " --threshold 2") == 4);
  CHECK(code(base + " " + slow + " --threshold 0 --json") == 4);
  CHECK(code(slow + " " + base + " --threshold 0") == 0);
  CHECK(code(base + " " + failed + " --threshold 50") == 4);
  CHECK(code(failed + " " + base) == 0);
  const Outcome apart =
      execute("compare " + base + " " + folder.write("other.jsonl", records("GPU-1", {{"c", 1}})).string());
  CHECK(apart.code == 3);
  CHECK_THAT(apart.out, ContainsSubstring("no row in common"));
}

TEST_CASE("compare: what cannot be compared is refused with one clear line", "[cli]") {
  const TempFolder folder;
  const std::string base = folder.write("base.jsonl", records("GPU-1", {{"a", 100}}));
  const std::string other = folder.write("other.jsonl", records("GPU-2", {{"a", 100}}));
  const auto refused = [&](const std::string& arguments, const std::string& says) {
    const Outcome outcome = execute("compare " + arguments);
    INFO(arguments << "\n" << outcome.out);
    CHECK(outcome.code == 2);
    CHECK(lines_of(outcome.out) == 1);
    CHECK_THAT(outcome.out, ContainsSubstring(says));
  };
  refused(base + " " + other, "base ran on H200 GPU-1, new on H200 GPU-2");
  refused(base, "new");
  refused(base + " " + (folder / "none").string(), "is not there");
  refused(base + " " + folder.path().string(), "holds no results.jsonl");
  refused(base + " " + folder.write("prose.txt", "not a record\n").string(), "holds no record");
  refused(base + " " + base + " --threshold=-1", "--threshold");
  refused(base + " " + base + " --threshold nan", "--threshold");
  refused(base + " " + base + " --json --markdown", "markdown");
  const Outcome forced = execute("compare --force " + base + " " + other);
  CHECK(forced.code == 0);
  CHECK_THAT(forced.out, ContainsSubstring("differs: device.uuid GPU-1 -> GPU-2"));
  CHECK_THAT(forced.out, ContainsSubstring("forced: "));
}

TEST_CASE("compare: JSON for programs and markdown for pull requests", "[cli]") {
  const TempFolder folder;
  const std::string base = folder.write("base.jsonl", records("GPU-1", {{"a|b", 100}, {"c", 1}}));
  const std::string slow = folder.write("slow.jsonl", records("GPU-1", {{"a|b", 110}, {"c", 1}}));
  const Outcome json = execute("compare " + base + " " + slow + " --json");
  CHECK(json.code == 4);
  CHECK(nlohmann::json::parse(json.out)["regressions"] == 1);
  const Outcome markdown = execute("compare " + base + " " + slow + " --markdown");
  CHECK(markdown.code == 4);
  CHECK_THAT(markdown.out, ContainsSubstring("a&#124;b"));
  CHECK_THAT(markdown.out, ContainsSubstring("**regression**, slower"));
}

TEST_CASE("compare: a page besides what is printed, with the same exit code", "[cli]") {
  const TempFolder folder;
  const std::string base = folder.write("base.jsonl", records("GPU-1", {{"a", 100}, {"b", 50}}));
  const std::string slow = folder.write("slow.jsonl", records("GPU-1", {{"a", 110}, {"b", 50}}));
  const std::string other = folder.write("other.jsonl", records("GPU-2", {{"a", 100}}));
  const fs::path page = folder / "page.html";
  const std::string html = " --html " + page.string();
  const Outcome table = execute("compare " + base + " " + slow + html);
  CHECK(table.code == 4);
  CHECK_THAT(table.out, ContainsSubstring("1 regression"));
  CHECK_THAT(table.out, ContainsSubstring("page: " + page.string() + "\n"));
  CHECK(read_file(page).starts_with("<!DOCTYPE html>"));
  CHECK(execute("compare " + base + " " + base + html).code == 0);
  const Outcome json = execute("compare " + base + " " + slow + " --json" + html);
  CHECK(json.code == 4);
  CHECK(nlohmann::json::parse(json.out)["regressions"] == 1);  // nothing else is printed
  CHECK(execute("compare " + base + " " + slow + " --markdown" + html).out.starts_with("### fusebench"));

  const fs::path none = folder / "none.html";
  for (const std::string& arguments :
       {base + " " + other + " --html " + none.string(), base + " " + base + " --html " + folder.path().string(),
        base + " " + base + " --html " + (folder / "no/where.html").string()}) {
    const Outcome refused = execute("compare " + arguments);
    INFO(arguments << "\n" << refused.out);
    CHECK(refused.code == 2);
    CHECK(lines_of(refused.out) == 1);
  }
  CHECK_FALSE(fs::exists(none));
}
