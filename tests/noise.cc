// The noise table: learned from records alone, kept by device and driver, refused where it does not apply.
#include "harness/noise.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/catch.h"
#include "tests/files.h"

using namespace fusebench;
using fusebench::reports::Records;
using fusebench::testing::TempFolder;
using Json = nlohmann::ordered_json;

namespace {

Records run_of(const std::vector<std::pair<std::string, double>>& medians, const std::string& uuid = "GPU-1") {
  Records run;
  run.header = {{"schema", 1}, {"device", {{"name", "card"}, {"uuid", uuid}}}, {"driver", "13.0"}};
  for (const auto& [variant, us] : medians) {
    run.rows.push_back({{"case_id", "rmsnorm/fp16"},
                        {"variant", variant},
                        {"verdict", "pass"},
                        {"cache", "cold"},
                        {"graph", false},
                        {"load", "sustained"},
                        {"median_us", us}});
  }
  return run;
}

NoiseTable learn(const std::vector<Records>& runs) { return learn_noise(runs, "2026-01-02T03:04:05Z", "580.65.06"); }

const NoiseClass& of(const NoiseTable& table, double us) {
  for (const NoiseClass& one : table.classes) {
    if (us >= one.from_us && (!one.to_us || us < *one.to_us)) return one;
  }
  throw std::logic_error("no class");
}

class Folder {
 public:
  Folder() { setenv("FUSEBENCH_NOISE", folder_.path().c_str(), 1); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { unsetenv("FUSEBENCH_NOISE"); }
  const TempFolder* operator->() const { return &folder_; }

 private:
  TempFolder folder_;
};

}  // namespace

TEST_CASE("classes are half decades, the last has no end", "[noise]") {
  const std::vector<NoiseClass> classes = noise_classes({});
  REQUIRE(classes.size() == 8);
  CHECK(classes.front().from_us == 0);
  CHECK(classes.front().to_us == 10.0);
  CHECK(classes.back().from_us == 10000);
  CHECK_FALSE(classes.back().to_us);
  for (std::size_t i = 0; i + 1 < classes.size(); ++i) CHECK(classes[i].to_us == classes[i + 1].from_us);
  for (const NoiseClass& one : classes) CHECK_FALSE(one.relative);
}

TEST_CASE("few pairs give the largest difference, many the one that 99% stay within", "[noise]") {
  const NoiseClass few = noise_classes({{5, 1.02, "a"}, {5, 0.96, "b"}, {9.99, 1, "c"}}).front();
  CHECK(few.relative.value() == Approx(1 / 0.96 - 1));
  CHECK(few.of == "b");
  std::vector<NoisePair> pairs;
  for (int i = 1; i <= 200; ++i) pairs.push_back({.duration_us = 50, .ratio = 1 + i / 1000.0});
  const NoiseClass one = noise_classes(pairs)[2];
  CHECK(one.pairs == 200);
  CHECK(one.relative.value() == Approx(0.198));
  pairs.resize(99);
  CHECK(noise_classes(pairs)[2].relative.value() == Approx(0.099));
  pairs.resize(1);
  CHECK(noise_classes(pairs)[2].relative.value() == Approx(0.001));
}

TEST_CASE("a pair falls into the class that begins at its duration", "[noise]") {
  const auto classes = noise_classes({{10, 1.1}, {9.999, 1.2}, {10000, 1.3}, {1e9, 1.1}});
  CHECK(classes[0].relative.value() == Approx(0.2));
  CHECK(classes[1].relative.value() == Approx(0.1));
  CHECK(classes[7].pairs == 2);
}

TEST_CASE("pairs that are no pairs are left out", "[noise]") {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  for (const NoiseClass& one :
       noise_classes({{nan, 1}, {5, nan}, {5, infinity}, {5, 0}, {5, -1}, {-1, 1}, {infinity, 1}})) {
    CHECK(one.pairs == 0);
  }
}

TEST_CASE("every two processes are a pair of a row", "[noise]") {
  const NoiseTable table = learn(
      {run_of({{"fused", 100}, {"naive", 5000}}), run_of({{"naive", 5050}, {"fused", 102}}), run_of({{"fused", 101}})});
  CHECK(table.restarts == 3);
  CHECK(table.device_uuid == "GPU-1");
  CHECK(of(table, 100).pairs == 3);
  CHECK(of(table, 100).relative.value() == Approx(0.02));
  CHECK(of(table, 5000).pairs == 1);
  CHECK(of(table, 5000).relative.value() == Approx(0.01));
}

TEST_CASE("a row whose medians straddle a border has all of its pairs in one class", "[noise]") {
  const NoiseTable table = learn({run_of({{"fused", 9.9}}), run_of({{"fused", 10.1}}), run_of({{"fused", 10.2}})});
  CHECK(of(table, 5).pairs == 0);
  CHECK(of(table, 10).pairs == 3);
}

TEST_CASE("modes are rows of their own, and rows that did not pass are none", "[noise]") {
  Records hot = run_of({{"fused", 50}});
  hot.rows[0]["cache"] = "hot";
  CHECK_THROWS_WITH(learn({run_of({{"fused", 100}}), hot}), ContainsSubstring("no row passed in two"));
  Records failed = run_of({{"fused", 100}});
  failed.rows[0]["verdict"] = "fail";
  CHECK_THROWS(learn({run_of({{"fused", 100}}), failed}));
  Records untimed = run_of({{"fused", 100}});
  untimed.rows[0]["median_us"] = nullptr;
  CHECK_THROWS(learn({run_of({{"fused", 100}}), untimed}));
  CHECK_THROWS_WITH(learn({run_of({{"fused", 100}}), run_of({{"fused", 100}}, "GPU-2")}), ContainsSubstring("GPU-2"));
  CHECK_THROWS(learn({}));
}

TEST_CASE("a table is written and read back, and its JSON is as documented", "[noise]") {
  const Folder folder;
  const NoiseTable table = learn({run_of({{"fused", 100}}), run_of({{"fused", 102}}), run_of({{"fused", 101}})});
  const auto file = noise_file(table.device_uuid);
  CHECK(file == *folder.operator->() / "noise-GPU-1.json");
  write_noise(file, table);
  const Known<NoiseTable> read = read_noise(file, "580.65.06");
  REQUIRE(read.value);
  CHECK(to_json(*read.value) == to_json(table));
  const Json json = to_json(table);
  CHECK(json["restarts"] == 3);
  CHECK(json["learned"] == "2026-01-02T03:04:05Z");
  CHECK(json["driver"] == "580.65.06");
  CHECK(json["classes"].size() == 8);
  CHECK(json["classes"][3]["relative"].get<double>() == Approx(0.02));
  CHECK_THAT(json["classes"][3]["of"].get<std::string>(), ContainsSubstring("fused"));
  CHECK(json["classes"][0]["relative"].is_null());
  CHECK(json["classes"][0]["of"].is_null());
  CHECK(json["classes"][7]["to_us"].is_null());
  CHECK(to_json(noise_classes({{100, 1.01}}))["classes"][3]["pairs"] == 1);
}

TEST_CASE("a table that does not apply is not used, and says what to do", "[noise]") {
  const Folder folder;
  const auto file = noise_file("GPU-1");
  CHECK_THAT(read_noise(file, "580.65.06").reason, ContainsSubstring("fusebench doctor --noise"));
  write_noise(file, learn({run_of({{"fused", 100}}), run_of({{"fused", 102}})}));
  const std::string other = read_noise(file, "590.1").reason;
  CHECK_THAT(other, ContainsSubstring("580.65.06"));
  CHECK_THAT(other, ContainsSubstring("590.1"));
  for (const char* damaged : {"", "{", "[]", "{}", "null", R"({"restarts": 5, "learned": 1})"}) {
    folder->write("noise-GPU-1.json", damaged);
    INFO(damaged);
    CHECK_THAT(read_noise(file, "580.65.06").reason, ContainsSubstring("is not a noise table"));
  }
  CHECK_THROWS_WITH(write_noise("/proc/none/noise.json", NoiseTable()), ContainsSubstring("FUSEBENCH_NOISE"));
}

TEST_CASE("a device without a UUID is known by its processor's model", "[noise]") {
  const DeviceFacts facts{.name = "AMD EPYC (TM) 9/64"};
  CHECK(noise_key(facts) == "cpu-AMD-EPYC--TM--9-64");
  CHECK(noise_key(Json{{"device", {{"name", facts.name}, {"uuid", nullptr}}}}) == noise_key(facts));
  CHECK(noise_key(DeviceFacts{.name = "card", .uuid = "GPU-1"}) == "GPU-1");
  CHECK(noise_driver("", "").empty());
}
