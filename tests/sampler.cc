#include "harness/sampler.h"

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/catch.h"

using namespace fusebench;

namespace {

// A clock that moves only while a sample is taken, and subjects that move it.
struct Bench {
  double now = 0;
  std::vector<std::string> log;

  Clock clock() {
    return [this] { return now; };
  }
  Subject subject(const std::string& name, double seconds) {
    return {name, [this, name, seconds](bool /*warming_up*/) {
              log.push_back(name);
              now += seconds;
              return Sample{.us = seconds * 1e6, .sm_mhz = 1980};
            }};
  }
};

Measure measure_of(int warmup, int samples, double max_seconds = 1e9) {
  Measure measure;
  measure.warmup = warmup;
  measure.samples = samples;
  measure.max_seconds = max_seconds;
  return measure;
}

}  // namespace

TEST_CASE("every subject gets its warm-ups and its samples") {
  Bench bench;
  const auto samples =
      take_samples({bench.subject("a", 1), bench.subject("b", 2)}, measure_of(10, 50), 42, 1, bench.clock());
  REQUIRE(samples.size() == 2);
  CHECK(samples[0].us == std::vector<double>(50, 1e6));
  CHECK(samples[1].us == std::vector<double>(50, 2e6));
  CHECK(samples[0].reason.empty());
  CHECK(samples[0].error.empty());
  CHECK(bench.log.size() == 2 * 60);
}

TEST_CASE("rounds interleave the subjects: each once a round, in changing order") {
  Bench bench;
  take_samples({bench.subject("a", 1), bench.subject("b", 1), bench.subject("c", 1)}, measure_of(2, 48), 7, 1,
               bench.clock());
  std::map<std::string, int> orders;
  for (std::size_t at = 0; at < bench.log.size(); at += 3) {
    std::string order = bench.log[at] + bench.log[at + 1] + bench.log[at + 2];
    ++orders[order];
    std::sort(order.begin(), order.end());
    CHECK(order == "abc");
  }
  CHECK(orders.size() == 6);
}

TEST_CASE("the order depends on the seed alone") {
  const auto order_of_run = [](std::uint64_t seed) {
    Bench bench;
    take_samples({bench.subject("a", 1), bench.subject("b", 1), bench.subject("c", 1)}, measure_of(10, 50), seed, 1,
                 bench.clock());
    return bench.log;
  };
  CHECK(order_of_run(42) == order_of_run(42));
  CHECK(order_of_run(42) != order_of_run(43));
}

TEST_CASE("every order is as likely as any other") {
  std::map<std::vector<std::size_t>, int> orders;
  constexpr int rounds = 24000;
  for (int round = 0; round < rounds; ++round) ++orders[round_order(4, 42, static_cast<std::uint64_t>(round))];
  REQUIRE(orders.size() == 24);
  double chi_squared = 0;
  for (const auto& [order, count] : orders) chi_squared += (count - 1000.0) * (count - 1000.0) / 1000.0;
  CHECK(chi_squared < 49.7);  // 23 degrees of freedom: exceeded by chance once in 1000
  CHECK(round_order(0, 1, 1).empty());
  CHECK(round_order(1, 1, 1) == std::vector<std::size_t>{0});
}

TEST_CASE("the orders are the same on every machine") {
  CHECK(round_order(5, 42, 0) == std::vector<std::size_t>{0, 3, 4, 2, 1});
  CHECK(round_order(5, 42, 1) == std::vector<std::size_t>{1, 4, 0, 2, 3});
}

TEST_CASE("a subject out of time leaves after three samples, and the others go on") {
  Bench bench;
  const auto samples =
      take_samples({bench.subject("slow", 4), bench.subject("fast", 0.01)}, measure_of(1, 50, 5), 42, 1, bench.clock());
  CHECK(samples[0].us.size() == 3);
  CHECK(samples[0].reason == "3 of 50 samples: max_seconds (5) reached");
  CHECK(samples[0].error.empty());
  CHECK(samples[1].us.size() == 50);
  CHECK(samples[1].reason.empty());
}

TEST_CASE("a subject leaves in the round in which its time is used up") {
  Bench bench;
  const auto samples = take_samples({bench.subject("a", 1)}, measure_of(0, 50, 10), 42, 1, bench.clock());
  CHECK(samples[0].us.size() == 10);
  CHECK(samples[0].reason == "10 of 50 samples: max_seconds (10) reached");
}

TEST_CASE("warm-ups leave half of the time for samples") {
  Bench bench;
  const auto samples = take_samples({bench.subject("a", 1)}, measure_of(10, 50, 8), 42, 1, bench.clock());
  CHECK(samples[0].us.size() == 4);
  CHECK(samples[0].reason == "4 of 50 samples: max_seconds (8) reached, after 4 of 10 warm-ups");
  CHECK(bench.log.size() == 8);
}

TEST_CASE("a slow subject has one warm-up all the same") {
  Bench bench;
  const auto samples = take_samples({bench.subject("a", 100)}, measure_of(10, 50, 5), 42, 1, bench.clock());
  CHECK(bench.log.size() == 4);
  CHECK(samples[0].us.size() == 3);
}

TEST_CASE("time between samples is nobody's") {
  double now = 0;
  const Subject subject{"a", [&](bool /*warming_up*/) {
                          now += 0.1;
                          return Sample{1e5};
                        }};
  // Each look at the clock outside of a sample costs nothing to the subject: it moves before the start is read.
  bool before = true;
  const Clock clock = [&] {
    if (before) now += 1000;
    before = !before;
    return now;
  };
  CHECK(take_samples({subject}, measure_of(0, 20, 5), 42, 1, clock)[0].us.size() == 20);
}

TEST_CASE("fewer than three samples are taken where no more are asked for") {
  Bench bench;
  const auto samples = take_samples({bench.subject("a", 100)}, measure_of(0, 2, 5), 42, 1, bench.clock());
  CHECK(samples[0].us.size() == 2);
  CHECK(samples[0].reason.empty());
}

TEST_CASE("a subject that throws is dropped with its message") {
  Bench bench;
  int calls = 0;
  const Subject broken{"broken", [&calls](bool /*warming_up*/) {
                         if (++calls == 15) throw std::runtime_error("illegal address");
                         return Sample{1};
                       }};
  const auto samples =
      take_samples({bench.subject("a", 1), broken, bench.subject("b", 1)}, measure_of(10, 50), 42, 1, bench.clock());
  CHECK(samples[1].error == "illegal address");
  CHECK(samples[1].reason == "a sample failed: illegal address");
  CHECK(samples[1].us.size() == 4);
  CHECK(calls == 15);
  CHECK(samples[0].us.size() == 50);
  CHECK(samples[2].us.size() == 50);
  CHECK(samples[0].error.empty());
}

TEST_CASE("samples go on until the median's interval is within ci") {
  // Alternates between two values; their share's interval narrows with the number of samples.
  int calls = 0;
  const Subject wide{"wide", [&calls](bool) {
                       ++calls;
                       return Sample{calls % 2 == 0 ? 100.0 : 100.0 + calls % 7};
                     }};
  const Subject steady{"steady", [](bool) { return Sample{100}; }};
  Measure measure = measure_of(0, 10);
  measure.ci = 0.011;
  const auto samples = take_samples({wide, steady}, measure, 42);
  CHECK(samples[1].us.size() == 10);
  CHECK(samples[0].us.size() > 10);
  CHECK(samples[0].us.size() < 100);
  CHECK(samples[0].reason.empty());
}

TEST_CASE("an interval that does not narrow ends at ten times the samples, or with the time, and says so") {
  int calls = 0;
  double now = 0;
  const Subject bimodal{"bimodal", [&](bool) {
                          now += 1;
                          return Sample{++calls % 2 == 0 ? 100.0 : 200.0};
                        }};
  const auto clock = [&now] { return now; };
  const Samples all = take_samples({bimodal}, measure_of(0, 10), 42, 1, clock)[0];
  CHECK(all.us.size() == 100);
  CHECK_THAT(all.reason, ContainsSubstring("after 100 samples, wider than ci (0.01): 10 times as many as asked"));
  const Samples timed = take_samples({bimodal}, measure_of(0, 10, 30), 42, 1, clock)[0];
  CHECK(timed.us.size() == 30);
  CHECK_THAT(timed.reason, ContainsSubstring("wider than ci (0.01): max_seconds (30) reached"));
}

TEST_CASE("turns come whole, each between its beginning and its end") {
  Bench bench;
  const auto turning = [&](const std::string& name) {
    Subject subject = bench.subject(name, 1);
    subject.begin_turn = [&bench, name] { bench.log.push_back("begin " + name); };
    subject.end_turn = [&bench, name] { bench.log.push_back("end " + name); };
    return subject;
  };
  const auto samples = take_samples({turning("a"), turning("b")}, measure_of(0, 10), 42, 5, bench.clock());
  CHECK(samples[0].us.size() == 10);
  CHECK(samples[0].sm_mhz == std::vector<double>(10, 1980));
  REQUIRE(bench.log.size() == 4 * 7);
  for (std::size_t at = 0; at < bench.log.size(); at += 7) {
    const std::string name = bench.log[at + 1];
    CHECK(bench.log[at] == "begin " + name);
    CHECK(std::vector<std::string>(bench.log.begin() + at + 1, bench.log.begin() + at + 6) ==
          std::vector<std::string>(5, name));
    CHECK(bench.log[at + 6] == "end " + name);
  }
}

TEST_CASE("what begins a turn may take all of the time, but not the turn") {
  Bench bench;
  Subject subject = bench.subject("a", 0.01);
  subject.begin_turn = [&bench] { bench.now += 6; };
  const auto samples = take_samples({subject}, measure_of(0, 50, 5), 42, 10, bench.clock());
  CHECK(samples[0].us.size() == 10);
  CHECK(samples[0].reason == "10 of 50 samples: max_seconds (5) reached");
}

TEST_CASE("a turn whose beginning or end throws drops its subject") {
  Bench bench;
  Subject early = bench.subject("early", 1);
  early.begin_turn = [] { throw std::runtime_error("no clock"); };
  Subject late = bench.subject("late", 1);
  late.end_turn = [] { throw std::runtime_error("damage"); };
  const auto samples = take_samples({early, late}, measure_of(0, 10), 42, 5, bench.clock());
  CHECK(samples[0].error == "no clock");
  CHECK(samples[0].us.empty());
  CHECK(samples[1].error == "damage");
}

TEST_CASE("a throw in a warm-up, or of no exception type, drops too") {
  const Subject early{"early", [](bool) -> Sample { throw std::runtime_error("no memory"); }};
  const Subject odd{"odd", [](bool) -> Sample { throw 7; }};
  const auto samples = take_samples({early, odd}, measure_of(1, 5), 42);
  CHECK(samples[0].error == "no memory");
  CHECK(samples[0].us.empty());
  CHECK(samples[1].error == "an exception of unknown type");
}

TEST_CASE("a latency that is no number is an error, not a sample") {
  const double bad = GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -1.0);
  const auto samples = take_samples({Subject{"a", [bad](bool) { return Sample{bad}; }}}, measure_of(0, 5), 42);
  CHECK(samples[0].us.empty());
  CHECK_THAT(samples[0].error, ContainsSubstring("a latency of"));
}

TEST_CASE("nobody to sample") { CHECK(take_samples({}, measure_of(10, 50), 42).empty()); }
