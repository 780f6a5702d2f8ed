#include "harness/init.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "harness/run.h"
#include "harness/shell.h"

namespace fusebench {
namespace {

constexpr std::string_view kStarter =
    R"yaml(# A sweep: what to compute, and how to measure it. `fusebench list` names ops, variants and models.
# docs/configuration.md has every key; `fusebench run THIS_FILE --dry-run` lists rows, memory and time.
name: {name}                # names the output folder, out/{name}-TIMESTAMP

# For entries that do not say otherwise.
defaults:
  dtype: auto                # fp16 on CUDA, fp32 on the CPU; or fp16, bf16, fp32, or a list of them
  seed: 42                   # the same seed draws the same inputs everywhere

measure:
  warmup: 3                  # rounds before the first sample
  samples: 20                # a row; up to ten times as many while `ci` is not reached
  max_seconds: 0.5           # of sampling a row; figures to keep deserve the default, 5
  ci: 0.02                   # wanted half-width of the median's 95% interval: 2%
  cache: cold                # cold: L2 flushed before each sample; hot: not; [cold, hot]: both
  load: sustained            # sustained: at a steady clock under load; burst: rested before each sample

# Each entry is the product of its lists; all variants are run unless `variants` names some.
sweep:
  # Bound by memory: what does each pass over it cost?
  - op: [rmsnorm, add_rmsnorm]
    dim: 4096                # width of the model
    batch: 1                 # sequences
    seq: [64, 256]           # new tokens of each: two cases an op

  # Products with something small around them.
  - op: mlp
    dim: 1024
    hidden: 2816             # width inside the MLP
    seq: 16

  # Decoding: one new token of each sequence after a cache.
  - op: [attention, block]
    dim: 1024
    hidden: 2816
    heads: 16                # query heads; dim / heads is the width of one
    kv_heads: 4              # grouped heads: each of K and V serves four query heads
    batch: 4
    seq: 1
    past: 512                # tokens that the cache holds
    causal: true             # no query sees a later key
    rope: half               # which elements rotate together: half (Hugging Face's) or interleaved

  # A real model's block, work for a GPU: take the # away.
  # - op: block
  #   model: llama3-8b       # dim, hidden, heads, kv_heads, rope and causal from configs/models.yaml
  #   batch: 1
  #   seq: 2048
  #   variants: [cublas, fused]
)yaml";

// A safe folder name that YAML takes for text.
bool may_be_a_name(const std::string& name) {
  constexpr std::size_t kMostLetters = 100;
  const auto is_letter = [](unsigned char c) { return c < 0x80 && std::isalpha(c) != 0; };
  return !name.empty() && name.size() <= kMostLetters && is_letter(static_cast<unsigned char>(name[0])) &&
         name != "null" && name != "Null" && name != "NULL" &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return c < 0x80 && (std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-');
         });
}

void replace_all(std::string& text, std::string_view what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

// Never over a file that is there.
void write_new(const std::filesystem::path& file, const std::string& text) {
  const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (out < 0 && errno == EEXIST) {
    throw UsageError(fmt::format("init: {} is there already; name another file, or remove it first", file.string()));
  }
  if (out < 0) {
    throw UsageError(fmt::format("init: {} cannot be written: {}; name a file in a folder that is there and writable",
                                 file.string(), std::generic_category().message(errno)));
  }
  const auto written = ::write(out, text.data(), text.size());
  if (::close(out) != 0 || written != static_cast<ssize_t>(text.size())) {
    ::unlink(file.c_str());
    throw std::runtime_error(fmt::format("init: {} cannot be written; is the disk full?", file.string()));
  }
}

}  // namespace

std::string starter_sweep(const std::string& name) {
  std::string text(kStarter);
  replace_all(text, "{name}", may_be_a_name(name) ? name : "sweep");
  return text;
}

void init(const std::filesystem::path& file, const std::string& program) {
  write_new(file, starter_sweep(file.stem().string()));
  const std::string name = file.string();
  const std::string config = shell_quoted(name.starts_with('-') ? "./" + name : name);
  fmt::print("{}: written. Change it as you like, then:\n\n", file.string());
  fmt::print("  {0} run {1} --dry-run   # which rows, how much memory, how long\n", program, config);
  fmt::print("  {0} run {1}             # measures, and ends with the path of its report\n", program, config);
}

}  // namespace fusebench
