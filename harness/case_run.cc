#include "harness/case_run.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "harness/binding.h"
#include "harness/dump.h"
#include "harness/host_memory.h"
#include "harness/load.h"
#include "harness/mutants.h"
#include "harness/nvml.h"
#include "harness/ranges.h"
#include "harness/sampler.h"
#include "harness/statistics.h"
#include "harness/step_times.h"
#include "harness/traffic.h"
#include "harness/verify.h"
#include "variants/choose.h"

namespace fusebench {
namespace {

constexpr std::size_t kRowsToOracle = 8;  // of those in which a variant and naive disagree
constexpr int kTurns = 5;                 // a variant's samples under sustained load come in so many
constexpr int kShortestTurn = 10;         // fewer are not worth the settling before them
constexpr int kLongestTurn = 20;          // a power limit leaves the clock alone for no longer (harness/load.cc)

// A variant on its way through the stages. It leaves with a verdict other than pass, and is then not timed.
struct Contender {
  std::string name;
  bool witness = false;  // naive, planned only to compare unsampled rows with: no row is reported
  std::optional<Plan> planned;
  std::unique_ptr<BoundPlan> bound;
  Verdict verdict = Verdict::error;
  std::string reason = "not run";
  std::optional<Verification> check;
  std::uint64_t verified_checksum = 0;
  std::vector<Output> outputs;  // of the verified launch; naive keeps them

  bool alive() const { return verdict == Verdict::pass; }
  void leave(Verdict why, std::string text) {
    verdict = why;
    reason = std::move(text);
    bound.reset();
  }
};

struct Mode {
  CacheMode cache = CacheMode::cold;
  bool graph = false;
};

std::vector<Mode> modes_of(const Measure& measure) {
  std::vector<Mode> modes;
  for (const bool graph : measure.graph) {
    for (const CacheMode cache : measure.cache) modes.push_back({cache, graph});
  }
  return modes;
}

class CaseRun {
 public:
  CaseRun(const Case& c, const std::vector<std::string>& names, CaseContext& context)
      : case_(c),
        context_(context),
        device_(context.device),
        spec_(spec_of(c)),
        load_(context.device, context.measure.load) {
    for (const std::string& name : names) contenders_.push_back({.name = name});
  }

  CaseResult run() {
    const Range range(case_id(case_));
    lost_ = context_.lost;
    if (!lost_.empty()) {
      for (Contender& contender : contenders_)
        contender.leave(Verdict::error, "not run: the device was lost: " + lost_);
    } else {
      try {
        prepare_all();
      } catch (const DeviceLost& lost) {
        lost_ = lost.what();
      }
    }
    const std::vector<Mode> modes = modes_of(context_.measure);
    std::vector<std::vector<Timing>> timings(modes.size(), std::vector<Timing>(contenders_.size()));
    try {
      for (std::size_t m = 0; m < modes.size() && lost_.empty(); ++m) time(modes[m], timings[m]);
      if (lost_.empty()) staged("traffic", [&] { count(modes, timings); });
    } catch (const DeviceLost& lost) {
      lost_ = lost.what();
    }
    for (std::size_t m = 0; m < modes.size(); ++m) report(modes[m], timings[m]);
    return {std::move(rows_), std::move(controls_), std::move(stage_seconds_), lost_};
  }

 private:
  struct Timing {
    Samples samples = {};
    Verdict verdict = Verdict::error;
    std::string reason = "not timed";
    bool deterministic = true;  // every timed launch gave the verified one's bits
    std::string failure = {};   // of the first timed launch that is wrong
    std::function<void()> launch = {};
    std::vector<DeviceState> states = {};  // after each turn
    Known<StepTimes> steps = {};
    Known<PlanTraffic> traffic = {};
    std::string traffic_source = "model";
  };

  // --- stages ---

  template <class Stage>
  void staged(const std::string& name, const Stage& stage) {
    const double start = steady_seconds();
    stage();
    stage_seconds_[name] += steady_seconds() - start;
  }

  void prepare_all() {
    try {
      prepare();
    } catch (const DeviceLost&) {
      throw;
    } catch (const std::exception& failure) {
      abandon(Verdict::error, failure.what());
      confirm_device(failure.what());
    }
  }

  void prepare() {
    plan();
    admit();
    if (std::none_of(contenders_.begin(), contenders_.end(), [](const Contender& s) { return s.alive(); })) return;
    context_.note("drawing inputs");
    staged("inputs", [&] { inputs_ = read_inputs(spec_, *context_.source(case_)); });
    context_.note("computing the oracle");
    staged("oracle",
           [&] { expected_ = expected_rows(case_, inputs_, context_.measure.verify, context_.oracle_cache); });
    staged("binding", [&] { bind(); });
    for (Contender& contender : contenders_) {
      if (!contender.alive()) continue;
      context_.note(contender.name + ": preparing and verifying");
      staged("verification", [&] { guarded(contender, [&] { verify(contender); }); });
    }
    if (context_.prove) prove();
    dump();
  }

  void plan() {
    const Target target = [&] {
      Target t = device_.target();
      if (context_.base_offset_elements != 0) t.alignment_bytes = bytes_of(case_.dtype);
      return t;
    }();
    const bool sampled = most_rows(case_, context_.measure.verify) < case_.tokens();
    if (sampled &&
        std::none_of(contenders_.begin(), contenders_.end(), [](const Contender& s) { return s.name == "naive"; })) {
      contenders_.insert(contenders_.begin(), {.name = "naive", .witness = true});
    }
    // naive comes first: the others' unsampled rows are compared with its own.
    std::stable_partition(contenders_.begin(), contenders_.end(), [](const Contender& s) { return s.name == "naive"; });
    for (Contender& contender : contenders_) plan_one(contender, target);
  }

  void plan_one(Contender& contender, const Target& target) {
    try {
      contender.planned = plan_variant(context_.variants, case_, contender.name, target);
      contender.verdict = Verdict::pass;
    } catch (const Unsupported& limit) {
      contender.leave(Verdict::unsupported, limit.what());
    }
  }

  // Who fits into memory, found before anything is allocated. On the CPU host and device share it.
  void admit() {
    const std::int64_t host = host_bytes_needed(case_, spec_, context_.measure.verify, context_.prove);
    const std::int64_t available_on_host = available_host_bytes();
    if (host > available_on_host) {
      abandon(Verdict::unsupported,
              fmt::format("needs {} bytes of host memory for inputs and expected rows, {} are available", host,
                          available_on_host));
      return;
    }
    const std::int64_t available = device_.free_bytes();
    const bool shared = device_.facts().backend == Backend::cpu;
    std::int64_t resident = saturating_sum(CaseMemory::bytes_needed(spec_), shared ? host : 0);
    std::int64_t workspace = 0;
    for (Contender& contender : contenders_) {
      if (!contender.alive()) continue;
      const std::int64_t prepared = BoundPlan::prepared_bytes(*contender.planned);
      const std::int64_t arena = std::max(workspace, BoundPlan::workspace_bytes(*contender.planned));
      const std::int64_t needed = saturating_sum(resident, prepared + arena);
      if (needed > available) {
        contender.leave(
            Verdict::unsupported,
            fmt::format("needs {} bytes of device memory beside the case's other variants, {} are available", needed,
                        available));
        continue;
      }
      resident += prepared;
      workspace = arena;
    }
    workspace_bytes_ = workspace;
  }

  void bind() {
    memory_.emplace(device_, spec_, inputs_, context_.base_offset_elements);
    memory_->reserve_workspace(workspace_bytes_);
    input_checksum_ = memory_->input_checksum();
    for (Contender& contender : contenders_) {
      if (!contender.alive()) continue;
      guarded(contender, [&] { contender.bound = std::make_unique<BoundPlan>(device_, *contender.planned, *memory_); });
    }
  }

  // Runs one variant's part of a stage: its exception becomes its verdict, a lost device ends the run.
  template <class Stage>
  void guarded(Contender& contender, Stage stage) {
    try {
      stage();
    } catch (const Unsupported& limit) {
      contender.leave(Verdict::unsupported, limit.what());
    } catch (const std::exception& failure) {
      contender.leave(Verdict::error, failure.what());
      confirm_device(failure.what());
    }
  }

  void confirm_device(const std::string& after) {
    try {
      device_.synchronize();
    } catch (const std::exception&) {
      abandon(Verdict::error, "the device was lost: " + after);
      lost_ = after;
      throw DeviceLost(after);
    }
  }

  void abandon(Verdict verdict, const std::string& reason) {
    for (Contender& contender : contenders_) {
      if (contender.alive()) contender.leave(verdict, reason);
    }
  }

  void verify(Contender& contender) {
    const Range range(contender.name);
    contender.bound->prepare(context_.measure.cache.front());
    memory_->poison_outputs();
    contender.bound->poison_workspace();
    device_.flush_cache();
    contender.bound->launch();
    device_.synchronize();
    contender.outputs = read_outputs();
    contender.verified_checksum = memory_->output_checksum();
    Judgement judgement = judge(case_, contender.outputs, expected_);
    std::string trespassed = trespass(contender);
    if (trespassed.empty() && !contender.bound->prepared_is_unchanged()) trespassed = "changed a prepared tensor";
    if (!trespassed.empty()) judgement.failure = trespassed;
    if (judgement.failure.empty()) judgement.failure = compare_with_naive(contender, judgement);
    contender.check = judgement.figures;
    if (!judgement.failure.empty()) {
      contender.leave(Verdict::fail, judgement.failure);
    }
    if (contender.name != "naive" && context_.dump.empty()) contender.outputs.clear();
  }

  // What a launch wrote where it must not; the memory is whole again afterwards.
  std::string trespass(const Contender& contender) {
    std::string failure = memory_->damage();
    if (failure.empty()) failure = contender.bound->damage();
    if (failure.empty() && memory_->input_checksum() != input_checksum_) failure = "changed an input";
    if (!failure.empty()) memory_->restore(inputs_);
    return failure;
  }

  // Rows that the oracle did not sample are compared with naive's; where they disagree, the oracle decides, on naive
  // too.
  std::string compare_with_naive(Contender& contender, Judgement& judgement) {
    Contender& naive = contenders_.front();
    if (&naive == &contender) return {};
    const std::vector<std::int64_t> rows = disagreements_with_naive(contender.outputs, judgement);
    if (rows.empty()) return {};
    context_.note(fmt::format("{}: {} rows disagree with naive; asking the oracle", contender.name, rows.size()));
    const Expected expected = compute_expected(case_, inputs_, rows);
    const Judgement naives = judge(case_, naive.outputs, expected);
    if (!naives.failure.empty()) naive.leave(Verdict::fail, naives.failure);
    judgement.figures.rows_checked += static_cast<std::int64_t>(rows.size());
    return judge(case_, contender.outputs, expected).failure;
  }

  std::vector<std::int64_t> disagreements_with_naive(const std::vector<Output>& outputs,
                                                     const Judgement& judgement) const {
    const Contender& naive = contenders_.front();
    const bool all_checked = static_cast<std::int64_t>(expected_.rows.size()) == case_.tokens();
    if (all_checked || naive.name != "naive" || !naive.alive()) return {};
    return disagreements(outputs, naive.outputs, judgement.budgets, kRowsToOracle);
  }

  // A timed launch's outputs, which are not those that were verified (naive's own are compared with its verified), or
  // a mutant's.
  std::string judge_anew(const std::vector<Output>& outputs) {
    const Judgement judgement = judge(case_, outputs, expected_);
    if (!judgement.failure.empty()) return judgement.failure;
    const std::vector<std::int64_t> rows = disagreements_with_naive(outputs, judgement);
    if (rows.empty()) return {};
    // Mutants disagree in the same rows, one after the other.
    if (disputed_.rows != rows) disputed_ = compute_expected(case_, inputs_, rows);
    return judge(case_, outputs, disputed_).failure;
  }

  // Once for all variants, since they are held to the same expected rows.
  void prove() {
    if (std::none_of(contenders_.begin(), contenders_.end(), [](const Contender& s) { return s.alive(); })) return;
    context_.note("computing mutants");
    const WrongRows wrong = wrong_rows(case_, inputs_, context_.source, expected_.rows, context_.oracle_cache);
    context_.note("trying the check on mutants");
    const Contender& naive = contenders_.front();
    const bool has_naive = naive.name == "naive" && naive.alive();
    mutants_ = try_mutants(case_, expected_, wrong, has_naive ? naive.outputs : exact_outputs(case_, expected_),
                           {.failure = [this](const std::vector<Output>& outputs) { return judge_anew(outputs); },
                            .sees_other_rows = true});
  }

  // A row that passed a check without power has not passed.
  void doubt(Row& row) const {
    row.mutants = !context_.prove ? row.mutants
                  : mutants_      ? Known<std::vector<Mutant>>(*mutants_)
                                  : Known<std::vector<Mutant>>::unknown("no variant passed the check");
    const std::string names = mutants_ ? let_through(*mutants_) : "";
    if (row.verdict != Verdict::pass || names.empty()) return;
    row.verdict = Verdict::no_power;
    row.reason = "the check lets mutants through: " + names;
  }

  std::vector<Output> read_outputs() const {
    std::vector<Output> outputs;
    for (const TensorSpec& tensor : spec_.tensors) {
      if (tensor.role != Role::input) outputs.push_back({tensor.name, memory_->read_output(tensor)});
    }
    return outputs;
  }

  // --- timing ---

  // One sample, from a poisoned output to a checked one: what is timed is what is checked, every time.
  Sample sample(const Contender& contender, const Mode mode, Timing& timing, bool warming_up) {
    const Range range(contender.name);
    if (!warming_up) load_.before_sample(timing.launch);
    if (mode.cache == CacheMode::hot) {
      // Behind the launch that warms, whose work must not pass for the timed one's: so few writes leave L2 as it is.
      // Once and twice in turn, so that a kernel which works at every second launch alone cannot fall in step.
      for (std::uint64_t more = ++poisonings_ % 2 + 1; more > 0; --more) timing.launch();
      memory_->poison_some_outputs(poisonings_);
      contender.bound->poison_some_workspace(poisonings_);
    } else {
      contender.bound->poison_workspace();
      memory_->poison_outputs();
      device_.flush_cache();
    }
    const Times times = device_.time({timing.launch}, !warming_up);
    if (!warming_up) load_.after_sample(times);
    check_sample(contender, timing);
    if (warming_up) check_trespass(contender, timing);
    return {.us = times.us.front(), .sm_mhz = times.sm_mhz, .held = times.held};
  }

  void check_sample(const Contender& contender, Timing& timing) {
    const bool as_verified = memory_->output_checksum() == contender.verified_checksum;
    timing.deterministic = timing.deterministic && as_verified;
    if (!as_verified && timing.failure.empty()) timing.failure = judge_anew(read_outputs());
  }

  // After each turn, so that what one variant damages is whole for the next.
  void check_trespass(const Contender& contender, Timing& timing) {
    const std::string trespassed = trespass(contender);
    if (timing.failure.empty()) timing.failure = trespassed;
  }

  Subject subject(const Contender& contender, const Mode mode, Timing& timing) {
    return {.name = contender.name,
            .sample = [this, &contender, mode,
                       &timing](bool warming_up) { return sample(contender, mode, timing, warming_up); },
            .begin_turn = [this, &timing] { load_.settle(timing.launch); },
            .end_turn =
                [this, &contender, &timing] {
                  timing.states.push_back(device_.state());
                  check_trespass(contender, timing);
                }};
  }

  std::function<void()> launch_of(const Contender& contender, const Mode mode) {
    const std::function<void()> launch = [&contender] { contender.bound->launch(); };
    return mode.graph ? device_.capture(launch) : launch;
  }

  void time(const Mode mode, std::vector<Timing>& timings) {
    std::vector<Subject> subjects;
    std::vector<std::size_t> index;  // of a subject among the contenders
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      const Contender& contender = contenders_[i];
      if (!contender.alive() || contender.witness) continue;
      try {
        timings[i].launch = launch_of(contender, mode);
      } catch (const Unsupported& limit) {
        timings[i] = {.verdict = Verdict::unsupported, .reason = limit.what()};
        continue;
      }
      subjects.push_back(subject(contender, mode, timings[i]));
      index.push_back(i);
    }
    const bool control = context_.control && !subjects.empty();
    if (control) subjects.push_back(subjects.back());
    context_.note("timing");
    const int turn =
        load_.settles() ? std::clamp((context_.measure.samples + kTurns - 1) / kTurns, kShortestTurn, kLongestTurn) : 1;
    std::vector<Samples> samples;
    staged("samples", [&] { samples = take_samples(subjects, context_.measure, case_.seed, turn); });
    if (control) {
      add_control(samples[samples.size() - 2], samples.back());
      samples.pop_back();
    }
    for (std::size_t i = 0; i < samples.size(); ++i) conclude(timings[index[i]], std::move(samples[i]));
    staged("steps", [&] {
      for (const std::size_t i : index) time_steps_of(contenders_[i], mode, timings[i]);
    });
  }

  void add_control(const Samples& one, const Samples& other) {
    if (one.us.empty() || other.us.empty()) return;
    const double median_us = median(one.us);
    controls_.push_back({.median_us = median_us, .ratio = median(other.us) / median_us});
  }

  void time_steps_of(const Contender& contender, const Mode mode, Timing& timing) {
    if (timing.verdict != Verdict::pass) {
      timing.steps = Known<StepTimes>::unknown(timing.reason);
      return;
    }
    // Most launches of a row are its steps': minutes under a sanitiser, for times that are the tool's.
    if (const std::string& tool = device_.facts().watched_by; !tool.empty()) {
      timing.steps = Known<StepTimes>::unknown(fmt::format("not timed: {} is attached", tool));
      return;
    }
    try {
      timing.steps =
          time_steps(device_, load_, *contender.bound, mode.cache, kStepTimesShare * context_.measure.max_seconds);
    } catch (const std::exception& failure) {
      timing.steps = Known<StepTimes>::unknown(failure.what());
      confirm_device(failure.what());
    }
  }

  // --- traffic ---

  // Behind all timing, since counters slow the device down.
  void count(const std::vector<Mode>& modes, std::vector<std::vector<Timing>>& timings) {
    const auto each = [&](const auto& visit) {
      for (std::size_t m = 0; m < modes.size(); ++m) {
        for (std::size_t i = 0; i < contenders_.size(); ++i) visit(modes[m], contenders_[i], timings[m][i]);
      }
    };
    std::unique_ptr<Counters> counters;
    std::string why = context_.measure.traffic ? "" : "not measured: the sweep says traffic: false";
    if (why.empty()) {
      try {
        counters = device_.open_counters();
      } catch (const std::exception& failure) {
        why = failure.what();
      }
    }
    each([&](const Mode mode, const Contender& contender, Timing& timing) {
      if (timing.verdict != Verdict::pass || counters == nullptr) {
        timing.traffic = Known<PlanTraffic>::unknown(timing.verdict != Verdict::pass ? timing.reason : why);
        return;
      }
      context_.note(contender.name + ": counting traffic");
      try {
        timing.traffic = count_traffic(device_, *counters, *contender.bound, timing.launch, mode.cache);
        timing.traffic_source = counters->source();
      } catch (const std::exception& failure) {
        timing.traffic = Known<PlanTraffic>::unknown(failure.what());
        confirm_device(failure.what());
      }
    });
  }

  // --- end of a timing ---

  void conclude(Timing& timing, Samples samples) {
    timing.samples = std::move(samples);
    if (!timing.samples.error.empty()) {
      timing.reason = timing.samples.error;
      confirm_device(timing.samples.error);
      return;
    }
    timing.verdict = timing.failure.empty() ? Verdict::pass : Verdict::fail;
    timing.reason = timing.failure.empty() ? "" : "a timed launch: " + timing.failure;
  }

  // --- records ---

  void report(const Mode mode, const std::vector<Timing>& timings) {
    const std::size_t first = rows_.size();  // of this mode's rows
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      if (!contenders_[i].witness) rows_.push_back(row_of(contenders_[i], mode, timings[i]));
    }
    for (std::size_t i = first; i < rows_.size(); ++i) {
      rows_[i].speedup_vs_naive = speedup(first, i, "naive");
      rows_[i].speedup_vs_cublas = speedup(first, i, std::string(library_name(device_.facts().backend)));
    }
  }

  Known<Ratio> speedup(std::size_t first, std::size_t subject, const std::string& base) const {
    if (rows_[subject].verdict != Verdict::pass) return Known<Ratio>::unknown("the row did not pass");
    for (std::size_t i = first; i < rows_.size(); ++i) {
      if (rows_[i].variant != base) continue;
      if (rows_[i].verdict != Verdict::pass) return Known<Ratio>::unknown(base + " did not pass");
      return paired_speedup(rows_[i].samples_us, rows_[subject].samples_us);
    }
    return Known<Ratio>::unknown(base + " is not among the case's variants");
  }

  Row row_of(const Contender& contender, const Mode mode, const Timing& timing) const {
    Row row;
    row.c = case_;
    row.variant = contender.name;
    row.backend = device_.facts().backend;
    row.cache = mode.cache;
    row.graph = mode.graph;
    row.load = context_.measure.load;
    row.verdict = contender.alive() ? timing.verdict : contender.verdict;
    row.reason = contender.alive() ? timing.reason : contender.reason;
    if (contender.check) row.check = *contender.check;
    if (!contender.check) row.check = Known<Verification>::unknown(row.reason);
    row.deterministic =
        timing.samples.us.empty() ? Known<bool>::unknown("the row was not timed") : Known<bool>(timing.deterministic);
    row.samples_us = timing.samples.us;
    row.samples_mhz = timing.samples.sm_mhz;
    row.unheld_samples = timing.samples.unheld;
    row.timing_reason = timing.samples.us.empty() ? "not timed: " + row.reason : timing.samples.reason;
    row.flops = spec_.flops;
    row.bytes_compulsory = spec_.compulsory_bytes;
    row.bytes_compulsory_written = spec_.compulsory_write_bytes;
    row.repro = context_.repro(case_, contender.name);
    doubt(row);
    describe_plan(contender, row);
    describe_measured(timing, row);
    if (context_.ceilings != nullptr) {
      context_.ceilings->apply_to(row);
    } else {
      row.bandwidth_ceiling_gbps = Known<double>::unknown("no ceiling was probed");
    }
    return row;
  }

  void describe_plan(const Contender& contender, Row& row) const {
    if (!contender.planned) {
      row.bytes_modelled = Known<std::int64_t>::unknown(contender.reason);
      row.workspace_bytes = Known<std::int64_t>::unknown(contender.reason);
      row.prepared_bytes = Known<std::int64_t>::unknown(contender.reason);
      row.prepare_us = Known<double>::unknown(contender.reason);
      row.launches = Known<int>::unknown(contender.reason);
      return;
    }
    const Plan& plan = contender.bound ? contender.bound->plan() : *contender.planned;
    row.kernel = plan.kernel();
    row.bytes_modelled = plan.modelled_bytes();
    row.workspace_bytes = BoundPlan::workspace_bytes(plan);
    row.prepared_bytes = plan.prepared_bytes();
    row.launches = plan.launches();
    row.prepare_us =
        contender.bound ? Known<double>(contender.bound->prepare_us()) : Known<double>::unknown(contender.reason);
    describe_ledger(plan, row);
  }

  void describe_ledger(const Plan& plan, Row& row) const {
    std::vector<bool> touched(plan.tensors().size(), false);
    const auto touches = [&](const std::vector<Access>& accesses) {
      std::vector<Touch> all;
      for (const Access& access : accesses) {
        if (access.bytes == 0) continue;  // only keeps the tensor alive
        touched[static_cast<std::size_t>(access.tensor)] = true;
        all.push_back({plan.tensor(access.tensor).name, access.bytes});
      }
      return all;
    };
    for (const Step& step : plan.steps()) {
      row.steps.push_back({.name = step.name,
                           .kernel = step.kernel,
                           .bytes_read = step.bytes_read(),
                           .bytes_written = step.bytes_written(),
                           .flops = step.flops,
                           .reads = touches(step.reads),
                           .writes = touches(step.writes)});
    }
    for (std::size_t i = 0; i < touched.size(); ++i) {
      const PlanTensor& tensor = plan.tensors()[i];
      if (!touched[i]) continue;
      TensorRow made = {.name = tensor.name,
                        .storage = std::string(name_of(tensor.storage)),
                        .dtype = tensor.dtype,
                        .dims = {tensor.rows, tensor.cols}};
      if (tensor.storage == Storage::op) {
        const TensorSpec& spec = spec_.tensors[i];
        made.dims = spec.dims;
        made.compulsory_read_bytes = spec.read_bytes;
        made.compulsory_write_bytes = spec.write_bytes;
      }
      row.tensors.push_back(std::move(made));
    }
  }

  // What held the clock down at the end of half of the turns or more: NVML tells with some delay.
  static Known<std::string> clock_limits_of(const std::vector<DeviceState>& states) {
    if (states.empty()) return Known<std::string>::unknown("not timed");
    std::uint64_t events = 0;
    for (std::uint64_t bit = kGpuIdle << 1; bit != 0; bit <<= 1) {
      std::size_t seen = 0;
      for (const DeviceState& state : states) {
        if (!state.clock_events.value) return Known<std::string>::unknown(state.clock_events.reason);
        if ((*state.clock_events.value & bit) != 0) ++seen;
      }
      if (2 * seen >= states.size()) events |= bit;
    }
    return clock_event_words(events);
  }

  // Means over the turns.
  static void describe_state(const Timing& timing, Row& row) {
    const auto mean_of = [&](Known<double> DeviceState::*member) {
      Known<double> sum = timing.states.empty() ? Known<double>::unknown("not timed") : Known<double>(0.0);
      for (const DeviceState& state : timing.states) {
        const Known<double>& value = state.*member;
        if (!value.value) return value;
        *sum.value += *value.value / static_cast<double>(timing.states.size());
      }
      return sum;
    };
    row.power_w = mean_of(&DeviceState::power_w);
    row.temperature_c = mean_of(&DeviceState::temperature_c);
    row.clock_limits = clock_limits_of(timing.states);
  }

  static void describe_measured(const Timing& timing, Row& row) {
    using Bytes = Known<std::int64_t>;
    const Known<PlanTraffic>& traffic = timing.traffic;
    const auto bytes = [&](const auto& get) {
      return traffic.value ? Bytes(get(*traffic.value)) : Bytes::unknown(traffic.reason);
    };
    describe_state(timing, row);
    row.traffic_source = timing.traffic_source;
    row.dram_read_bytes = bytes([](const PlanTraffic& t) { return t.plan.dram_read_bytes; });
    row.dram_write_bytes = bytes([](const PlanTraffic& t) { return t.plan.dram_write_bytes + t.late_write_bytes; });
    row.dram_late_write_bytes = bytes([](const PlanTraffic& t) { return t.late_write_bytes; });
    row.l2_bytes = bytes([](const PlanTraffic& t) { return t.plan.l2_bytes; });
    for (std::size_t i = 0; i < row.steps.size(); ++i) {
      StepRow& step = row.steps[i];
      step.dram_read_bytes = bytes([i](const PlanTraffic& t) { return t.in_place[i].dram_read_bytes; });
      step.dram_write_bytes = bytes([i](const PlanTraffic& t) { return t.in_place[i].dram_write_bytes; });
      step.alone_dram_read_bytes = bytes([i](const PlanTraffic& t) { return t.alone[i].dram_read_bytes; });
      step.alone_dram_write_bytes = bytes([i](const PlanTraffic& t) { return t.alone[i].dram_write_bytes; });
      if (timing.steps.value) {
        step.time_us = timing.steps.value->in_place_us[i];
        step.alone_us = timing.steps.value->alone_us[i];
      } else {
        step.time_us = step.alone_us = Known<double>::unknown(timing.steps.reason);
      }
    }
  }

  // --- dump ---

  void dump() const {
    if (context_.dump.empty()) return;
    dump_case(context_.dump, case_, spec_, inputs_, expected_);
    for (const Contender& contender : contenders_) {
      if (!contender.witness && !contender.outputs.empty())
        dump_outputs(context_.dump, case_, contender.name, contender.outputs);
    }
  }

  Case case_;
  CaseContext& context_;
  Device& device_;
  OpSpec spec_;
  std::vector<Contender> contenders_;
  InputSet inputs_;
  Expected expected_;
  Expected disputed_;  // rows that the oracle did not sample and in which outputs disagreed, those asked for last
  std::optional<std::vector<Mutant>> mutants_;
  std::optional<CaseMemory> memory_;
  std::int64_t workspace_bytes_ = 0;
  std::uint64_t input_checksum_ = 0;  // before anything ran
  Load load_;
  std::uint64_t poisonings_ = 0;
  std::vector<Row> rows_;
  std::vector<Control> controls_;
  std::map<std::string, double> stage_seconds_;
  std::string lost_;
};

}  // namespace

std::vector<std::string> default_variants(const Registry& variants, Op op, Backend backend) {
  std::vector<std::string> names;
  for (const Variant* variant : variants.all(op, backend)) {
    if (variant->name.find('.') == std::string::npos) names.push_back(variant->name);
  }
  return names;
}

Plan plan_variant(const Registry& variants, const Case& c, const std::string& name, const Target& target) {
  const Variant* variant = variants.find(c.op, target.backend, name);
  if (variant == nullptr) {
    throw Unsupported(fmt::format("{} has no variant '{}' on {}; it has {}", name_of(c.op), name,
                                  name_of(target.backend),
                                  fmt::join(default_variants(variants, c.op, target.backend), ", ")));
  }
  if (std::find(variant->dtypes.begin(), variant->dtypes.end(), c.dtype) == variant->dtypes.end()) {
    std::vector<std::string_view> known;
    for (const DType dtype : variant->dtypes) known.push_back(name_of(dtype));
    throw Unsupported(
        fmt::format("{} of {} takes {}, not {}", name, name_of(c.op), fmt::join(known, ", "), name_of(c.dtype)));
  }
  return variant->plan(c, target);
}

CaseResult run_case(const Case& c, const std::vector<std::string>& variants, CaseContext& context) {
  return CaseRun(c, variants, context).run();
}

Expected expected_rows(const Case& c, const InputSet& inputs, const VerifyRows& verify, const OracleCache& cache) {
  const std::vector<std::int64_t> rows = choose_rows(c, verify);
  Expected expected;
  if (cache.load(c, rows, expected)) return expected;
  expected = compute_expected(c, inputs, rows);
  try {
    cache.save(c, expected);
  } catch (const std::exception&) {
    // A cache that cannot be written costs time at the next run, nothing else.
  }
  return expected;
}

}  // namespace fusebench
