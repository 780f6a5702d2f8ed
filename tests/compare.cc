#include "reports/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "reports/bootstrap.h"
#include "reports/compare_noise.h"
#include "reports/compare_text.h"
#include "tests/catch.h"

using namespace fusebench;
using reports::ComparedRow;
using reports::Comparison;
using reports::Json;
using reports::Kind;
using reports::Records;

namespace {

// Normal and uniform draws that every library makes alike.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : bits_(seed) {}
  double uniform() { return (static_cast<double>(bits_() >> 11) + 0.5) * 0x1p-53; }
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * 3.14159265358979 * uniform()); }

 private:
  std::mt19937_64 bits_;
};

// Samples about 1, in the order taken.
using Series = std::function<std::vector<double>(Draw&, std::size_t)>;

Series autoregressive(double correlation, double deviation) {
  return [=](Draw& draw, std::size_t n) {
    std::vector<double> samples;
    double state = draw.normal();
    for (std::size_t i = 0; i < n; ++i) {
      samples.push_back(1 + deviation * state);
      state = correlation * state + std::sqrt(1 - correlation * correlation) * draw.normal();
    }
    return samples;
  };
}

// Levels that hold for eight samples on average, as clocks do, and spikes as an operating system makes.
Series blocky(double deviation) {
  return [=](Draw& draw, std::size_t n) {
    std::vector<double> samples;
    double level = draw.normal();
    for (std::size_t i = 0; i < n; ++i) {
      if (draw.uniform() < 0.125) level = draw.normal();
      const double spike = draw.uniform() < 0.03 ? 1.5 : 1;
      samples.push_back(spike * (1 + deviation * (0.95 * level + 0.3 * draw.normal())));
    }
    return samples;
  };
}

Json header(const Json& noise = nullptr) {
  Json json = Json::parse(R"({"schema": 1, "run_id": "r", "name": "sweep", "started": "2026-11-29T18:00:00Z",
      "backend": "cuda", "device": {"name": "H200", "uuid": "GPU-1", "l2_bytes": 62914560},
      "driver": "580.1", "libraries": {"cuda": "13.0", "cublas": "13.1"}, "build": {"version": "0.1.0"},
      "config_sha256": "abc", "warnings": [], "stages_s": {}})");
  json["noise"] = noise;
  if (noise.is_null()) json["noise_reason"] = "not learned";
  return json;
}

// One class for all durations.
Json noise_table(double relative, double pairs = 1000) {
  return {{"restarts", 5},
          {"classes", {{{"from_us", 0}, {"to_us", nullptr}, {"relative", relative}, {"pairs", pairs}}}},
          {"a_a", nullptr}};
}

double middle(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples.empty() ? 0 : (samples[(samples.size() - 1) / 2] + samples[samples.size() / 2]) / 2;
}

Json row_of(const std::string& case_id, const std::vector<double>& samples_us, const std::string& variant = "fused") {
  Json row = {{"case_id", case_id}, {"variant", variant}, {"backend", "cuda"},
              {"cache", "cold"},    {"graph", false},     {"load", "sustained"},
              {"verdict", "pass"},  {"reason", nullptr},  {"samples", samples_us.size()},
              {"launches", 7},      {"rel_l2", 1e-4},     {"workspace_bytes", 185000000}};
  row["median_us"] = samples_us.empty() ? Json() : Json(middle(samples_us));
  row["samples_us"] = samples_us;
  return row;
}

std::vector<double> about(double us, std::size_t n = 50) {
  std::vector<double> samples;
  for (std::size_t i = 0; i < n; ++i) samples.push_back(us * (1 + 0.001 * static_cast<double>(i * 7 % 11)));
  return samples;
}

Records run_of(const std::vector<Json>& rows, const Json& head = header()) { return {head, rows, {}}; }

ComparedRow compare_one(const Json& base, const Json& current, const Json& head = header(noise_table(0.01))) {
  const Comparison comparison = reports::compare(run_of({base}, head), run_of({current}, head));
  REQUIRE(comparison.rows.size() == 1);
  return comparison.rows[0];
}

struct Rates {
  double slower = 0, faster = 0, same = 0, unsure = 0;
  double changed() const { return slower + faster; }
};

struct Simulation {
  Series series;
  std::size_t samples = 50;
  double figure = 0.01;  ///< of the noise table; 0: none
  double slowdown = 0;
  /// Of one process, as a part of the figure: processes differ by the figure or less in 99% of pairs.
  std::function<double(Draw&)> drift = [](Draw& draw) { return draw.normal() / (2.576 * std::sqrt(2.0)); };
  double drift_figure = 0;  ///< what the drift is a part of where the table has no figure
};

Rates simulate(const Simulation& simulation, std::size_t rows = 1000) {
  Draw draw(rows);
  const double figure = simulation.figure > 0 ? simulation.figure : simulation.drift_figure;
  const auto process = [&](double us, double slowdown) {
    const double factor = us * (1 + slowdown) * std::exp(figure * simulation.drift(draw));
    std::vector<double> samples = simulation.series(draw, simulation.samples);
    for (double& sample : samples) sample *= factor;
    return samples;
  };
  std::vector<Json> base;
  std::vector<Json> current;
  for (std::size_t i = 0; i < rows; ++i) {
    const double us = 5 * std::pow(1000, draw.uniform());
    base.push_back(row_of(std::to_string(i), process(us, 0)));
    current.push_back(row_of(std::to_string(i), process(us, simulation.slowdown)));
  }
  const Json head = header(simulation.figure > 0 ? noise_table(simulation.figure) : Json());
  const Comparison comparison = reports::compare(run_of(base, head), run_of(current, head));
  const auto rate = [&](Kind kind) {
    return static_cast<double>(reports::count(comparison, kind)) / static_cast<double>(rows);
  };
  const Rates rates{rate(Kind::slower), rate(Kind::faster), rate(Kind::same), rate(Kind::unsure)};
  UNSCOPED_INFO("slower " << rates.slower << ", faster " << rates.faster << ", same " << rates.same << ", unsure "
                          << rates.unsure);
  return rates;
}

}  // namespace

TEST_CASE("the same binary twice is the same or unsure in 99% of rows, however its samples hang together") {
  const auto [name, series] = GENERATE(table<std::string, Series>({{"independent", autoregressive(0, 0.01)},
                                                                   {"correlated", autoregressive(0.5, 0.01)},
                                                                   {"wandering", autoregressive(0.9, 0.01)},
                                                                   {"blocky with spikes", blocky(0.01)}}));
  CAPTURE(name);
  CHECK(simulate({.series = series}).changed() <= 0.01);
}

TEST_CASE("ten samples that hang together know little, and the noise table makes up for it") {
  // Within one level of the clock ten samples look as if there were no noise at all.
  const auto [name, series] = GENERATE(
      table<std::string, Series>({{"wandering", autoregressive(0.9, 0.01)}, {"blocky with spikes", blocky(0.01)}}));
  CAPTURE(name);
  Draw draw(5);
  std::vector<double> differences;
  for (int pair = 0; pair < 1000; ++pair) {
    const double process = std::exp(0.003 * draw.normal());
    differences.push_back(std::abs(process * middle(series(draw, 10)) / middle(series(draw, 10)) - 1));
  }
  std::sort(differences.begin(), differences.end());
  const auto drift = [](Draw& d) { return 0.003 / std::sqrt(2.0) * d.normal(); };
  const double figure = differences[990];
  CHECK(
      simulate({.series = series, .samples = 10, .figure = figure, .drift = [=](Draw& d) { return drift(d) / figure; }})
          .changed() <= 0.01);
}

TEST_CASE("the same, where processes differ by the whole figure every time") {
  const auto at_the_edge = [](Draw& draw) { return draw.uniform() < 0.5 ? 0.5 : -0.5; };
  const Rates rates = simulate({.series = autoregressive(0.5, 0.005), .figure = 0.01, .drift = at_the_edge}, 2000);
  CHECK(rates.changed() <= 0.01);
}

TEST_CASE("the same, with no noise table and processes that differ by a GPU's 1.5%") {
  const Rates rates = simulate({.series = blocky(0.01), .figure = 0, .drift_figure = 0.015});
  CHECK(rates.changed() <= 0.01);
}

TEST_CASE("quiet rows of the same binary are called the same, not only unsure") {
  CHECK(simulate({.series = autoregressive(0.3, 0.005)}).same >= 0.7);
}

TEST_CASE("a planted slowdown of 3% is slower, and its mirror faster") {
  const double deviation = GENERATE(0.005, 0.01);
  const double correlation = GENERATE(0.3, 0.5);
  const double expected = deviation == 0.01 && correlation == 0.5 ? 0.9 : 0.95;  // the hardest corner: 91% and 93% came
  CAPTURE(deviation, correlation);
  const Series series = autoregressive(correlation, deviation);
  CHECK(simulate({.series = series, .figure = 0.01, .slowdown = 0.03}).slower >= expected);
  CHECK(simulate({.series = series, .figure = 0.01, .slowdown = 1 / 1.03 - 1}).faster >= expected);
}

TEST_CASE("where the noise table has no figure, 3% still shows over the assumed 2% in quiet rows") {
  const Rates rates = simulate(
      {.series = autoregressive(0.3, 0.005), .figure = 0, .slowdown = 0.03, .drift = [](Draw&) { return 0.0; }});
  CHECK(rates.slower >= 0.9);
}

TEST_CASE("a table learned from forty pairs of processes holds as well") {
  // What the table's own figure misses, being the largest of a few pairs, the interval makes up for.
  Draw draw(7);
  const Series series = autoregressive(0.5, 0.01);
  const auto process = [&](double slowdown) {
    const double factor = 100 * (1 + slowdown) * std::exp(0.003 * draw.normal());
    std::vector<double> samples = series(draw, 50);
    for (double& sample : samples) sample *= factor;
    return samples;
  };
  std::size_t changed = 0;
  constexpr std::size_t tables = 20;
  constexpr std::size_t rows = 50;
  for (std::size_t table = 0; table < tables; ++table) {
    double figure = 0;
    for (int pair = 0; pair < 40; ++pair) {
      figure = std::max(figure, std::abs(middle(process(0)) / middle(process(0)) - 1));
    }
    std::vector<Json> base;
    std::vector<Json> current;
    for (std::size_t i = 0; i < rows; ++i) {
      base.push_back(row_of(std::to_string(i), process(0)));
      current.push_back(row_of(std::to_string(i), process(0)));
    }
    const Json head = header(noise_table(figure, 40));
    const Comparison comparison = reports::compare(run_of(base, head), run_of(current, head));
    changed += reports::count(comparison, Kind::slower) + reports::count(comparison, Kind::faster);
  }
  CHECK(static_cast<double>(changed) <= 0.01 * tables * rows);
}

TEST_CASE("bootstrap: blocks grow with correlation, and stay within n^(1/3) and n/3") {
  Draw draw(1);
  const auto length = [&](double correlation) {
    double sum = 0;
    for (int i = 0; i < 100; ++i) {
      sum += static_cast<double>(reports::block_length(autoregressive(correlation, 0.01)(draw, 100)));
    }
    return sum / 100;
  };
  CHECK(length(0) < 6);
  CHECK(length(0.5) > length(0));
  CHECK(length(0.9) > 2 * length(0.5));
  CHECK(reports::block_length(std::vector<double>(64, 5.0)) == 4);  // equal samples: nothing is known of correlation
  std::vector<double> rising;
  for (int i = 1; i <= 60; ++i) rising.push_back(i);
  CHECK(reports::block_length(rising) == 20);
  CHECK(reports::block_length(std::vector<double>{1, 2, 3, 4, 5, 6}) == 2);
}

TEST_CASE("bootstrap: the same samples give the same interval, whatever their unit") {
  const std::vector<double> base = about(100);
  const std::vector<double> current = about(103, 40);
  const reports::RatioOfMedians once = reports::ratio_of_medians(base, current);
  const reports::RatioOfMedians again = reports::ratio_of_medians(base, current);
  CHECK(once.lo == again.lo);
  CHECK(once.hi == again.hi);
  CHECK(once.lo <= once.ratio);
  CHECK(once.ratio <= once.hi);
  CHECK(once.ratio == Approx(1.03).epsilon(1e-3));
  std::vector<double> in_ns = base;
  for (double& sample : in_ns) sample *= 1000;
  CHECK(reports::ratio_of_medians(in_ns, in_ns).lo == Approx(reports::ratio_of_medians(base, base).lo));
}

TEST_CASE("bootstrap: the interval holds the true ratio of correlated samples about as often as it says") {
  const double correlation = GENERATE(0.0, 0.5);
  const Series series = autoregressive(correlation, 0.01);
  Draw draw(3);
  int held = 0;
  for (int i = 0; i < 1000; ++i) {
    const reports::RatioOfMedians ratio = reports::ratio_of_medians(series(draw, 50), series(draw, 50));
    held += ratio.lo <= 1 && 1 <= ratio.hi;
  }
  CAPTURE(correlation, held);
  CHECK(held >= 975);
}

TEST_CASE("verdicts: only an interval beyond the noise is slower or faster") {
  const auto kind = [](double ratio, double noise) {
    return compare_one(row_of("a", about(100)), row_of("a", about(100 * ratio)), header(noise_table(noise))).kind;
  };
  CHECK(kind(1, 0.02) == Kind::same);
  CHECK(kind(1.03, 0.01) == Kind::slower);
  CHECK(kind(1 / 1.03, 0.01) == Kind::faster);
  CHECK(kind(1.03, 0.05) == Kind::same);
  CHECK(kind(1.01, 0.01) == Kind::unsure);  // the interval straddles the noise
}

TEST_CASE("verdicts: on a CPU without a noise table a small difference is neither slower nor the same") {
  const auto kind = [](double ratio) {
    Json base = row_of("a", about(100));
    base["backend"] = "cpu";
    Json current = row_of("a", about(100 * ratio));
    current["backend"] = "cpu";
    return compare_one(base, current, header()).kind;
  };
  CHECK(kind(1) == Kind::same);
  CHECK(kind(1.5) == Kind::unsure);
  CHECK(kind(2.1) == Kind::slower);
}

TEST_CASE("a slower row regresses when the interval's nearer end lies beyond the threshold") {
  const Json head = header(noise_table(0.01));
  const auto regressions = [&](double ratio, double threshold) {
    return reports::regressions(reports::compare(run_of({row_of("a", about(100))}, head),
                                                 run_of({row_of("a", about(100 * ratio))}, head),
                                                 {.threshold = threshold}));
  };
  CHECK(regressions(1.03, 0.03) == 0);
  CHECK(regressions(1.03, 0) == 1);
  CHECK(regressions(1.06, 0.03) == 1);
  CHECK(regressions(1 / 1.06, 0) == 0);
}

TEST_CASE("a verdict that was pass and is not is a regression, at whatever speed") {
  const auto row = [](const std::string& verdict, double us = 100) {
    Json json = row_of("a", about(us));
    json["verdict"] = verdict;
    if (verdict != "pass") json["reason"] = "because";
    return json;
  };
  const ComparedRow failed = compare_one(row("pass"), row("fail", 50));
  CHECK(failed.kind == Kind::unsure);  // a wrong result's latency is not judged
  CHECK(failed.reason == "fail in new");
  CHECK(failed.regression == "verdict went from pass to fail: because");
  REQUIRE_FALSE(failed.changes.empty());
  CHECK(failed.changes[0].column == "verdict");
  for (const char* verdict : {"no_power", "unsupported", "error", "crashed", "timeout"}) {
    CHECK_FALSE(compare_one(row("pass"), row(verdict)).regression.empty());
  }
  CHECK(compare_one(row("fail"), row("pass")).regression.empty());
  CHECK(compare_one(row("fail"), row("crashed")).regression.empty());
  CHECK(compare_one(row("unsupported"), row("unsupported")).reason == "unsupported in both");
  CHECK(compare_one(row("no_power"), row("no_power")).kind == Kind::same);
}

TEST_CASE("rows are joined by case, variant, backend and mode; what one run lacks is new or gone") {
  Json hot = row_of("a", about(100));
  hot["cache"] = "hot";
  const Records base = run_of({row_of("a", about(100)), row_of("b", about(100)), row_of("a", about(50), "naive")});
  const Records current = run_of({row_of("a", about(50), "naive"), hot, row_of("a", about(100))});
  const Comparison comparison = reports::compare(base, current);
  REQUIRE(comparison.rows.size() == 4);
  CHECK(reports::joined(comparison) == 2);
  CHECK(comparison.rows[1].kind == Kind::gone);
  CHECK(comparison.rows[1].key["case_id"] == "b");
  CHECK(comparison.rows[3].kind == Kind::fresh);
  CHECK(comparison.rows[3].key["cache"] == "hot");
  CHECK(comparison.rows[2].ratio->value == Approx(1));
  CHECK(reports::by_importance(comparison)[0]->kind == Kind::gone);
  CHECK(reports::regressions(comparison) == 0);
}

TEST_CASE("a row that ran in another mode only is gone, and it is said where it went") {
  Json hot = row_of("a", about(100));
  hot["cache"] = "hot";
  const Comparison comparison = reports::compare(run_of({row_of("a", about(100))}), run_of({hot}));
  CHECK(reports::joined(comparison) == 0);
  CHECK_THAT(comparison.notes.at(0), ContainsSubstring("1 row of base: new has it in another mode"));
}

TEST_CASE("rows that a run repeats are joined in order") {
  const Records base = run_of({row_of("a", about(100)), row_of("a", about(200))});
  const Comparison comparison = reports::compare(base, base);
  REQUIRE(comparison.rows.size() == 2);
  CHECK(comparison.rows[1].occurrence == 2);
  CHECK(comparison.rows[1].ratio->value == Approx(1));
  CHECK_THAT(reports::row_name(comparison.rows[1]), ContainsSubstring("occurrence 2"));
  CHECK(reports::count(reports::compare(base, run_of({row_of("a", about(100))})), Kind::gone) == 1);
}

TEST_CASE("rows that are unsure may be slower; runs without a common row are not compared") {
  const auto said = [](const Json& base, const Json& current) {
    return reports::regressions_of(reports::compare(run_of({base}), run_of({current})));
  };
  using Catch::Matchers::EndsWith;
  CHECK_THAT(said(row_of("a", about(100)), row_of("a", about(100))), EndsWith("than base by more than 3%"));
  CHECK_THAT(said(row_of("a", about(100, 3)), row_of("a", about(900, 3))), EndsWith("by more than 3%; 1 may be"));
  CHECK(said(row_of("a", about(100)), row_of("b", about(100))) ==
        "nothing was compared: the runs have no row in common");
}

TEST_CASE("a run that was cut off still compares, and says what it lost") {
  std::string text = reports::to_line(header());
  for (const char* id : {"a", "b", "c"}) text += reports::to_line(row_of(id, about(100)));
  const auto parse = [](const std::string& lines) {
    std::istringstream in(lines);
    return reports::read_records(in);
  };
  const Records whole = parse(text);
  const Comparison comparison = reports::compare(whole, parse(text.substr(0, text.size() - 40)));
  CHECK(reports::joined(comparison) == 2);
  CHECK(reports::count(comparison, Kind::gone) == 1);
  CHECK_THAT(reports::caveats_of(comparison).at(0), ContainsSubstring("new: results.jsonl: line 4 is cut off"));
  CHECK(reports::joined(reports::compare(whole, parse(text.substr(0, text.find('\n') + 1)))) == 0);
}

TEST_CASE("different devices are refused; what else differs is marked") {
  const std::vector<Json> rows = {row_of("a", about(100))};
  const auto against = [&](const std::function<void(Json&)>& edit) {
    Json other = header();
    edit(other);
    return reports::compare(run_of(rows), run_of(rows, other));
  };
  CHECK(against([](Json&) {}).refusal.empty());
  CHECK(against([](Json&) {}).differences.empty());
  const Comparison moved = against([](Json& h) { h["device"]["uuid"] = "GPU-2"; });
  CHECK_THAT(moved.refusal, ContainsSubstring("base ran on H200 GPU-1, new on H200 GPU-2"));
  CHECK(moved.differences.at(0).fact == "device.uuid");
  CHECK(reports::joined(moved) == 1);  // still complete, for whoever forces it
  CHECK_FALSE(against([](Json& h) { h["device"] = {{"name", "EPYC"}, {"uuid", nullptr}}; }).refusal.empty());
  CHECK(against([](Json& h) { h["device"]["uuid"] = nullptr; }).refusal.empty());
  const auto marked = [&](const std::string& fact, const std::function<void(Json&)>& edit) {
    const Comparison comparison = against(edit);
    CAPTURE(fact);
    CHECK(comparison.refusal.empty());
    REQUIRE(comparison.differences.size() == 1);
    CHECK(comparison.differences[0].fact == fact);
  };
  marked("driver", [](Json& h) { h["driver"] = "590.2"; });
  marked("libraries.cublas", [](Json& h) { h["libraries"]["cublas"] = "13.2"; });
  marked("libraries.cupti", [](Json& h) { h["libraries"]["cupti"] = "1"; });
  marked("schema", [](Json& h) { h["schema"] = 2; });
  marked("backend", [](Json& h) { h["backend"] = "cpu"; });
  marked("config_sha256", [](Json& h) { h["config_sha256"] = "abd"; });
}

TEST_CASE("records without a header compare, and it is said that their device is not known") {
  const std::vector<Json> rows = {row_of("a", about(100))};
  const Comparison comparison = reports::compare(run_of(rows), run_of(rows, Json()));
  CHECK(comparison.refusal.empty());
  CHECK(comparison.rows[0].kind == Kind::same);
  CHECK_THAT(comparison.notes.at(0), ContainsSubstring("new has no header"));
}

TEST_CASE("noise: the largest figure of either header for the duration of either median") {
  const auto classes = [](double short_us, double long_us) {
    return Json{{{"from_us", 0}, {"to_us", 10}, {"relative", short_us}, {"pairs", 40}},
                {{"from_us", 10}, {"to_us", nullptr}, {"relative", long_us}, {"pairs", 40}}};
  };
  const Json base = header({{"classes", classes(0.012, 0.004)}, {"a_a", {{"classes", classes(0.001, 0.006)}}}});
  const Json current = header({{"classes", classes(0.011, 0.005)}, {"a_a", nullptr}});
  const auto noise = [&](double base_us, double new_us) {
    return reports::noise_of(base, current, base_us, new_us, false);
  };
  CHECK(noise(5, 5).relative == 0.012);
  CHECK(noise(5, 5).source == "restarts of base");
  CHECK(noise(100, 100).relative == 0.006);
  CHECK(noise(100, 100).source == "A/A of base");
  CHECK(noise(10, 10).relative == 0.006);   // a class begins at its lower end
  CHECK(noise(10, 9.9).relative == 0.012);  // either median
  CHECK(noise(100, 100).assumed == 0);
  CHECK(reports::noise_of(header(), current, 100, 100, false).relative == 0.005);  // one header is enough
}

TEST_CASE("noise: what no header knows is assumed, with the reason") {
  const reports::Noise none = reports::noise_of(header(), header(), 100, 100, false);
  CHECK(none.relative == reports::kAssumedNoise);
  CHECK(none.source == "assumed");
  CHECK(none.why == "base: not learned");
  CHECK(reports::noise_of(Json(), Json(), 100, 100, true).relative == reports::kAssumedNoiseCpu);
  CHECK(reports::noise_of(Json(), Json(), 100, 100, true).same_within == reports::kAssumedNoise);
  // Within one run alone, or from few pairs: the floor holds, unless the figure is larger.
  const Json within = header({{"classes", nullptr}, {"a_a", noise_table(0.001)}});
  CHECK(reports::noise_of(within, within, 100, 100, false).relative == reports::kAssumedNoise);
  const Json few = header(noise_table(0.001, 5));
  CHECK(reports::noise_of(few, few, 100, 100, false).relative == reports::kAssumedNoise);
  CHECK_THAT(reports::noise_of(few, few, 100, 100, false).why, ContainsSubstring("only 5 pairs"));
  const Json wide = header(noise_table(0.07, 5));
  CHECK(reports::noise_of(wide, wide, 100, 100, false).relative == 0.07);
  CHECK(reports::noise_of(wide, wide, 100, 100, false).same_within == 0.07);
  CHECK(reports::noise_of(wide, wide, 100, 100, false).assumed == reports::kAssumedNoise);
  for (const char* damaged : {"7", "[]", R"({"classes": 3})", R"({"classes": [1, {"relative": "x"}]})",
                              R"({"classes": [{"relative": -1}]})", R"({"a_a": 1})"}) {
    CAPTURE(damaged);
    const Json head = header(Json::parse(damaged));
    CHECK(reports::noise_of(head, head, 100, 100, false).relative == reports::kAssumedNoise);
  }
}

TEST_CASE("changes: traffic, error, workspace and launches are told; counters may scatter") {
  Json base = row_of("a", about(100));
  base["dram_read_bytes"] = 1000000000;
  base["dram_write_bytes"] = 10000;
  base["kernel"] = "gemm";
  Json current = base;
  current["dram_read_bytes"] = 1010000000;  // 1%
  current["dram_write_bytes"] = 40000;      // a page or two left in L2
  CHECK(compare_one(base, current).changes.empty());
  current["dram_read_bytes"] = 1500000000;
  current["rel_l2"] = 2e-4;
  current["workspace_bytes"] = 0;
  current["launches"] = nullptr;
  current["kernel"] = "gemm | wgmma";
  current["throttled_samples"] = 25;
  std::vector<std::string> told;
  for (const reports::Change& change : compare_one(base, current).changes)
    told.push_back(reports::format_change(change));
  CHECK(told == std::vector<std::string>{"kernel gemm -> gemm | wgmma", "rel_l2 0.0001 -> 0.0002",
                                         "dram_read_bytes 1000 MB -> 1500 MB", "workspace_bytes 185.0 MB -> 0 MB",
                                         "launches 7 -> none", "throttled_samples none -> 25"});
}

TEST_CASE("samples that were throttled are not compared") {
  const Json base = row_of("a", about(100));
  Json slow = base;
  std::vector<double> mhz(50, 1500);
  for (std::size_t i = 10; i < 30; ++i) {
    slow["samples_us"][i] = 130;
    mhz[i] = 1300;
  }
  CHECK(compare_one(base, slow).kind != Kind::same);
  slow["samples_mhz"] = mhz;
  slow["median_unthrottled_us"] = 100.5;
  const ComparedRow row = compare_one(base, slow);
  CHECK(row.kind == Kind::same);
  CHECK(row.current.samples == 30);
  CHECK(row.current.median_us == 100.5);
  // A clock that is low throughout is the row's own.
  slow["samples_mhz"] = std::vector<double>(50, 1300);
  CHECK(compare_one(base, slow).current.samples == 50);
}

TEST_CASE("rows without latency, or with too little of it, are unsure with the reason") {
  const Json timed = row_of("a", about(100));
  CHECK(compare_one(row_of("a", {}), row_of("a", {})).reason == "no latency in either");
  CHECK(compare_one(timed, row_of("a", {})).reason == "no latency in new");
  CHECK(compare_one(row_of("a", {}), timed).reason == "no latency in base");
  const ComparedRow few = compare_one(timed, row_of("a", about(150, 5)));
  CHECK(few.kind == Kind::unsure);
  CHECK(few.reason == "fewer than 6 samples in new: no interval");
  CHECK(few.ratio->value == Approx(1.5).epsilon(0.01));
  Json broken = timed;
  broken["samples_us"][3] = nullptr;
  CHECK(compare_one(timed, broken).kind == Kind::unsure);
  Json zero = timed;
  zero["samples_us"] = std::vector<double>(50, 0.0);
  zero["median_us"] = 0;
  CHECK(compare_one(zero, timed).kind == Kind::unsure);
  CHECK(compare_one(timed, zero).kind == Kind::unsure);
  Json odd = timed;
  odd["samples_us"] = "many";
  odd["verdict"] = 7;
  CHECK(compare_one(timed, odd).regression == "verdict went from pass to none");
}

namespace {

const char* const kHostile = "a|b`c`\"d\"\\ <img src=x> **e** [f](g) @someone #1 \n\r\x1b[2J $h ~i~ \xe2\x82\xac";

Comparison hostile_comparison() {
  Json base = row_of(kHostile, about(100), kHostile);
  Json current = base;
  current["verdict"] = kHostile;
  current["reason"] = kHostile;
  current["kernel"] = kHostile;
  Json head = header();
  head["name"] = kHostile;
  head["driver"] = kHostile;
  head["warnings"] = {kHostile};
  return reports::compare(run_of({base, row_of("gone", about(1))}), run_of({current, row_of("new", about(1))}, head),
                          {.base_path = kHostile, .new_path = "bytes \xff\xfe"});
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("json: complete, and text stays text") {
  const Json json = Json::parse(reports::comparison_json(hostile_comparison()));
  CHECK(json["rows"][0]["case_id"] == kHostile);
  CHECK(json["rows"][0]["latency"] == "unsure");
  CHECK(json["base"]["path"] == kHostile);
  CHECK(json["counts"]["gone"] == 1);
  CHECK(json["counts"]["new"] == 1);
  CHECK(json["regressions"] == 1);
  CHECK(json["differences"][0]["fact"] == "driver");

  const Json head = header(noise_table(0.01));
  const Comparison slower =
      reports::compare(run_of({row_of("a", about(100))}, head), run_of({row_of("a", about(110))}, head));
  const Json row = Json::parse(reports::comparison_json(slower))["rows"][0];
  for (const char* key : {"case_id", "variant", "backend", "cache", "graph", "load"}) CHECK_FALSE(row[key].is_null());
  CHECK(row["latency"] == "slower");
  CHECK(row["new_over_base"].get<double>() == Approx(1.1));
  CHECK(row["new_over_base_lo"] <= row["new_over_base"]);
  CHECK(row["new_over_base_hi"] >= row["new_over_base"]);
  CHECK(row["noise"] == 0.01);
  CHECK(row["noise_source"] == "restarts of base");
  CHECK(row["base"]["median_us"].get<double>() == Approx(100.5));
  CHECK_FALSE(row["regression"].is_null());
}

TEST_CASE("markdown: names cannot break the table nor become markup") {
  const std::string text = reports::comparison_markdown(hostile_comparison());
  CHECK_THAT(text, ContainsSubstring("**regression**"));
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find('`') == std::string::npos);
  CHECK(text.find("<img") == std::string::npos);
  CHECK(text.find("](") == std::string::npos);
  CHECK(text.find('@') == std::string::npos);
  std::size_t rows = 0;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("|")) {
      CAPTURE(line);
      CHECK(std::count(line.begin(), line.end(), '|') == 7);
      ++rows;
    } else if (!line.empty() && !line.starts_with("- ") && !line.starts_with("###")) {
      CHECK_THAT(line, ContainsSubstring("regression"));  // nothing of a name begins a line
    }
  }
  CHECK(rows == 2 + 3);
}

TEST_CASE("markdown: quiet rows are folded, regressions are first, every ratio says over what") {
  const Json head = header(noise_table(0.01));
  Json renamed = row_of("c", about(100));
  renamed["launches"] = 3;
  const Comparison comparison =
      reports::compare(run_of({row_of("a", about(100)), row_of("b", about(100)), row_of("c", about(100))}, head),
                       run_of({row_of("a", about(100)), row_of("b", about(110)), renamed}, head));
  const std::string text = reports::comparison_markdown(comparison);
  CHECK(text.find("<code>b/fused") < text.find("<code>c/fused"));
  CHECK(text.find("<code>c/fused") < text.find("<details>"));
  CHECK(text.find("<details>") < text.find("<code>a/fused"));
  CHECK_THAT(text, ContainsSubstring("| new/base [99%] |"));
  CHECK_THAT(text, ContainsSubstring("3 rows: 1 slower, 2 same"));
  CHECK_THAT(text, ContainsSubstring("launches 7 -&#62; 3"));
}

TEST_CASE("table: regressions first, how many rows of each kind, and no record can steer the terminal") {
  const std::string hostile = reports::comparison_table(hostile_comparison(), {.width = 80});
  CHECK(hostile.find('\x1b') == std::string::npos);
  CHECK(hostile.find('\r') == std::string::npos);
  CHECK_THAT(hostile, ContainsSubstring("differs: driver 580.1 -> a|b"));
  CHECK_THAT(hostile, ContainsSubstring("3 rows: 1 gone, 1 unsure, 1 new\n"));
  CHECK_THAT(hostile,
             ContainsSubstring("1 regression: 0 slower than base by more than 3%, 1 whose verdict was pass\n"));

  const Json head = header(noise_table(0.012));
  const Comparison comparison =
      reports::compare(run_of({row_of("a", about(100)), row_of("b", about(100))}, head),
                       run_of({row_of("a", about(100)), row_of("b", about(110))}, head), {.base_path = "out/1"});
  const std::string text = reports::comparison_table(comparison, {.colour = true});
  CHECK(text.find("b/fused") < text.find("a/fused"));
  CHECK_THAT(text, ContainsSubstring("\x1b[31mslower"));
  CHECK_THAT(text, ContainsSubstring("new/base [99%]"));
  CHECK_THAT(text, ContainsSubstring("1.2%"));
  CHECK_THAT(text, ContainsSubstring("regression: slower than base by more than 3%"));
  CHECK_THAT(text, ContainsSubstring("base  out/1: sweep, 2026-11-29T18:00:00Z, fusebench 0.1.0, 2 rows"));
}

TEST_CASE("comparisons of nothing render") {
  const Comparison nothing = reports::compare(Records(), Records());
  CHECK_THAT(reports::comparison_table(nothing, {}), ContainsSubstring("0 rows\n"));
  CHECK(Json::parse(reports::comparison_json(nothing))["rows"].empty());
  CHECK_THAT(reports::comparison_markdown(nothing), ContainsSubstring("0 rows"));
}

TEST_CASE("page: the comparison's JSON, and nothing of a record ends its script") {
  const auto data_of = [](const std::string& page) {
    const std::string opening = R"(<script type="application/json" id="records">)";
    const std::size_t begin = page.find(opening) + opening.size();
    return page.substr(begin, page.find("</script>", begin) - begin);
  };
  const Comparison hostile = hostile_comparison();
  const std::string page = reports::comparison_page(hostile);
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.ends_with("</html>\n"));
  CHECK_THAT(page, ContainsSubstring("default-src 'none'; script-src 'sha256-"));
  CHECK(data_of(page).find('<') == std::string::npos);
  const Json data = Json::parse(data_of(page));
  CHECK(data["kind"] == "compare");
  CHECK(data["rows"][0]["case_id"] == kHostile);
  CHECK(data["said"]["counts"] == reports::counts_of(hostile));
  // What programs get is in the page, all of it.
  const Json all = Json::parse(reports::comparison_json(hostile));
  for (const auto& [key, value] : all.items()) {
    CAPTURE(key);
    CHECK(data[key] == value);
  }
  CHECK_THAT(reports::comparison_page(reports::compare(Records(), Records())), ContainsSubstring("new against base"));
}
