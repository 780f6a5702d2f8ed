#include "harness/config.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>

#include "harness/yaml.h"
#include "reports/sha256.h"
#include "tests/catch.h"
#include "tests/files.h"

namespace fusebench {
namespace {

namespace fs = std::filesystem;
using testing::TempFolder;

Config config_of(const std::string& text, Backend backend = Backend::cpu) {
  const TempFolder folder;
  return load_config(folder.write("c.yaml", text), backend);
}

/// The error's line, "c.yaml:line:column: key: ...", or "" if the text is taken.
std::string error_of(const std::string& text) {
  const TempFolder folder;
  const fs::path path = folder.write("c.yaml", text);
  try {
    load_config(path, Backend::cpu);
  } catch (const ConfigError& error) {
    const std::string line = error.what();
    const std::string start = folder.path().string() + "/";
    CHECK(line.rfind(start, 0) == 0);
    CHECK(line.find('\n') == std::string::npos);
    return line.substr(start.size());
  }
  return "";
}

/// A sweep of one entry, on line 2, whose keys are in flow style from column 10 on.
std::string entry(const std::string& keys) { return "name: a\nsweep: [{" + keys + "}]\n"; }

/// A sound entry with one more key, on line 5 at column 5.
std::string with(const std::string& line) {
  return "name: a\nsweep:\n  - op: qkv\n    model: seed\n    " + line + "\n";
}

std::string measure(const std::string& keys) {
  return "name: a\nmeasure: {" + keys + "}\nsweep: [{op: rmsnorm, dim: 8}]\n";
}

// --- what is taken

TEST_CASE("config: every key") {
  const Config config = config_of(R"(
name: all-keys_1.0
defaults: {dtype: bf16, seed: 7, variants: [naive, fused]}
measure:
  warmup: 3
  samples: 20
  max_seconds: 2.5
  ci: 0.02
  cache: [cold, hot]
  graph: [false, true]
  load: burst
  traffic: false
  verify: 64
sweep:
  - op: block
    dim: 64
    hidden: 96
    heads: 8
    kv_heads: 2
    batch: 3
    seq: 5
    past: 9
    causal: true
    rope: half
    rope_theta: 1e4
    eps: 1e-6
    dtype: fp16
    inputs: seed
    seed: 18446744073709551615
    variants: naive
)");
  CHECK(config.name == "all-keys_1.0");
  CHECK(config.path.filename() == "c.yaml");
  REQUIRE(config.cases.size() == 1);
  const Case& c = config.cases[0].c;
  CHECK(c.op == Op::block);
  CHECK(c.dim == 64);
  CHECK(c.hidden == 96);
  CHECK(c.heads == 8);
  CHECK(c.kv_heads == 2);
  CHECK(c.batch == 3);
  CHECK(c.seq == 5);
  CHECK(c.past == 9);
  CHECK(c.causal);
  CHECK(c.rope == Pairing::half);
  CHECK(c.rope_theta == 500000);  // canonical: drawn angles have none
  CHECK(c.eps == 1e-6);
  CHECK(c.dtype == DType::fp16);
  CHECK(c.inputs == Inputs::seed);
  CHECK(c.seed == 18446744073709551615U);
  CHECK(config.cases[0].variants == std::vector<std::string>{"naive"});

  const Measure& m = config.measure;
  CHECK(m.warmup == 3);
  CHECK(m.samples == 20);
  CHECK(m.max_seconds == 2.5);
  CHECK(m.ci == 0.02);
  CHECK(m.cache == std::vector<CacheMode>{CacheMode::cold, CacheMode::hot});
  CHECK(m.graph == std::vector<bool>{false, true});
  CHECK(m.load == LoadMode::burst);
  CHECK_FALSE(m.traffic);
  CHECK_FALSE(m.verify.full);
  CHECK(m.verify.rows_per_case == 64);
}

TEST_CASE("config: the built-in defaults") {
  const Config config = config_of(entry("op: block, dim: 64, hidden: 96, heads: 8"));
  REQUIRE(config.cases.size() == 1);
  Case expected;
  expected.op = Op::block;
  expected.dtype = DType::fp32;
  expected.dim = 64;
  expected.hidden = 96;
  expected.heads = expected.kv_heads = 8;
  CHECK(config.cases[0].c == expected);
  CHECK(config.cases[0].variants.empty());

  CHECK(config.measure.warmup == 10);
  CHECK(config.measure.samples == 50);
  CHECK(config.measure.max_seconds == 5);
  CHECK(config.measure.ci == 0.01);
  CHECK(config.measure.cache == std::vector<CacheMode>{CacheMode::cold});
  CHECK(config.measure.graph == std::vector<bool>{false});
  CHECK(config.measure.load == LoadMode::sustained);
  CHECK(config.measure.traffic);
  CHECK_FALSE(config.measure.verify.full);
  CHECK(config.measure.verify.rows_per_case == 0);
}

TEST_CASE("config: verify takes words and counts") {
  CHECK(config_of(measure("verify: full")).measure.verify.full);
  CHECK_FALSE(config_of(measure("verify: sample")).measure.verify.full);
  CHECK(config_of(measure("verify: 1")).measure.verify.rows_per_case == 1);
}

TEST_CASE("config: dtype auto follows the backend") {
  const std::string text = entry("op: rmsnorm, dim: 8, dtype: auto");
  CHECK(config_of(text, Backend::cpu).cases[0].c.dtype == DType::fp32);
  CHECK(config_of(text, Backend::cuda).cases[0].c.dtype == DType::fp16);
  CHECK(config_of(entry("op: rmsnorm, dim: 8"), Backend::cuda).cases[0].c.dtype == DType::fp16);
  CHECK(config_of(entry("op: rmsnorm, dim: 8, dtype: bf16"), Backend::cpu).cases[0].c.dtype == DType::bf16);
}

std::vector<std::string> ids_of(const Config& config) {
  std::vector<std::string> ids;
  for (const SweepCase& swept : config.cases) ids.push_back(case_id(swept.c));
  return ids;
}
using Ids = std::vector<std::string>;

TEST_CASE("config: the product of an entry's lists, the first key slowest, defaults' lists fastest") {
  const Config config = config_of(
      "name: a\ndefaults: {seed: [1, 2]}\nsweep: [{op: [rmsnorm, add_rmsnorm], batch: [1, 2], dim: 8, seq: 3}]\n");
  CHECK(ids_of(config) == Ids{"rmsnorm/fp32/d8/b1-s3/balanced-1", "rmsnorm/fp32/d8/b1-s3/balanced-2",
                              "rmsnorm/fp32/d8/b2-s3/balanced-1", "rmsnorm/fp32/d8/b2-s3/balanced-2",
                              "add_rmsnorm/fp32/d8/b1-s3/balanced-1", "add_rmsnorm/fp32/d8/b1-s3/balanced-2",
                              "add_rmsnorm/fp32/d8/b2-s3/balanced-1", "add_rmsnorm/fp32/d8/b2-s3/balanced-2"});
}

TEST_CASE("config: equal cases collapse") {
  // past, heads and causal are none of rmsnorm's; 4 and 4 are one
  const Config config =
      config_of(entry("op: [rmsnorm, attention], dim: [8, 8], heads: [2, 4], causal: [true, false], past: [0, 4, 4]") +
                "# and the same again, from another entry\n");
  CHECK(std::count_if(config.cases.begin(), config.cases.end(),
                      [](const SweepCase& swept) { return swept.c.op == Op::rmsnorm; }) == 1);
  CHECK(config.cases.size() == 1 + 2 * 2 * 2);
}

TEST_CASE("config: a collapsed case takes the variants of all its entries") {
  const auto joined = [](const std::string& first, const std::string& second) {
    const Config config =
        config_of("name: a\nsweep:\n- {op: rmsnorm, dim: 8" + first + "}\n- {op: rmsnorm, dim: 8" + second + "}\n");
    REQUIRE(config.cases.size() == 1);
    return config.cases[0].variants;
  };
  using Names = std::vector<std::string>;
  CHECK(joined(", variants: [naive, fused]", ", variants: [fused, eigen]") == Names{"naive", "fused", "eigen"});
  CHECK(joined(", variants: naive", "").empty());
  CHECK(joined("", ", variants: naive").empty());
}

TEST_CASE("config: an entry's value beats its model's, which beats defaults, which beat the built-in one") {
  const Config config = config_of(
      "name: a\n"
      "defaults: {dim: 64, heads: 2, kv_heads: 1, eps: 1e-3, seq: 7, rope: half, batch: 2}\n"
      "sweep:\n"
      "- {op: qkv, model: seed, heads: 64, batch: 5}\n"
      "- {op: qkv}\n");
  REQUIRE(config.cases.size() == 2);
  const Case& modelled = config.cases[0].c;
  CHECK(modelled.dim == 4096);
  CHECK(modelled.heads == 64);
  CHECK(modelled.eps == 1e-5);
  CHECK(modelled.rope == Pairing::interleaved);
  CHECK(modelled.seq == 7);
  CHECK(modelled.batch == 5);
  CHECK(modelled.kv_heads == 32);
  const Case& plain = config.cases[1].c;
  CHECK(plain.dim == 64);
  CHECK(plain.heads == 2);
  CHECK(plain.kv_heads == 1);
  CHECK(plain.eps == 1e-3);
  CHECK(plain.rope == Pairing::half);
  CHECK(plain.past == 0);
}

TEST_CASE("config: several models, and a value that is unused by one of two ops") {
  const Config config = config_of(entry("op: [rmsnorm, mlp], model: [llama3-8b, llama3.2-1b], hidden: 96"));
  CHECK(ids_of(config) == Ids{"rmsnorm/fp32/d4096/b1-s1/balanced-42", "rmsnorm/fp32/d2048/b1-s1/balanced-42",
                              "mlp/fp32/d4096-f96/b1-s1/balanced-42", "mlp/fp32/d2048-f96/b1-s1/balanced-42"});
}

TEST_CASE("config: defaults may hold what an entry does not use") {
  CHECK(config_of("name: a\ndefaults: {hidden: 5, causal: true}\nsweep: [{op: rmsnorm, dim: 8}]\n").cases.size() == 1);
}

TEST_CASE("config: an unknown variant is no mistake of the file") {
  CHECK(config_of(entry("op: rmsnorm, dim: 8, variants: [of-tomorrow]")).cases[0].variants[0] == "of-tomorrow");
}

TEST_CASE("config: byte order mark, Windows line ends, comments and quoted text") {
  const Config config =
      config_of("\xef\xbb\xbf# caf\xc3\xa9\r\nname: \"a\"\r\nsweep:\r\n- op: 'rmsnorm' # one\r\n  dim: 8\r\n...\r\n");
  CHECK(config.name == "a");
  CHECK(config.cases.size() == 1);
}

TEST_CASE("config: sha256 is of the file's bytes") {
  const std::string text = entry("op: rmsnorm, dim: 8");
  CHECK(config_of(text).sha256 == sha256_hex(text));
  CHECK(config_of(text + "#").sha256 != sha256_hex(text));
}

// --- the file

TEST_CASE("config error: a file that is not there, a folder, one too long") {
  const auto message = [](const fs::path& path) -> std::string {
    try {
      load_config(path, Backend::cpu);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message("/no/such.yaml") == "/no/such.yaml: cannot be read: No such file or directory; name a YAML file");
  const TempFolder folder;
  CHECK(message(folder.path()) == folder.path().string() + ": cannot be read: it is a folder; name a YAML file");
  const fs::path large = folder.write("large.yaml", std::string((16 << 20) + 1, '#'));
  CHECK(message(large) == large.string() + ": cannot be read: it has more than 16 MiB; name a YAML file");
}

TEST_CASE("config error: a file without permission") {
  if (::geteuid() == 0) return;  // root may read everything
  const TempFolder folder;
  const fs::path path = folder.write("c.yaml", "name: a");
  fs::permissions(path, fs::perms::none);
  CHECK_THROWS_WITH(load_config(path, Backend::cpu), ContainsSubstring("cannot be read: Permission denied"));
}

TEST_CASE("config error: an empty document") {
  const std::string expected = "c.yaml:1:1: document: it is empty; write 'name:' and 'sweep:'";
  CHECK(error_of("") == expected);
  CHECK(error_of("# nothing\n") == expected);
  CHECK(error_of("\xef\xbb\xbf") == expected);
}

TEST_CASE("config error: a document that is no map") {
  CHECK(error_of("- a\n- b\n") == "c.yaml:1:1: document: is not a map; write 'key: value' lines");
  CHECK(error_of("just text\n") == "c.yaml:1:1: document: is not a map; write 'key: value' lines");
}

TEST_CASE("config error: several documents") {
  const std::string expected = "document: a second document starts here; keep one document a file";
  CHECK(error_of(entry("op: rmsnorm, dim: 8") + "---\nname: b\n") == "c.yaml:3:1: " + expected);
  CHECK(error_of(entry("op: rmsnorm, dim: 8") + "...\n---\n") == "c.yaml:4:1: " + expected);
}

TEST_CASE("config error: invalid UTF-8, by character and not by byte") {
  CHECK(error_of("name: a\nsweep: \xff\n") == "c.yaml:2:8: document: byte 0xff is not UTF-8; save the file as UTF-8");
  CHECK(error_of("name: \xc3\xa9\xc3\xa9\xc3(\n") ==
        "c.yaml:1:9: document: byte 0xc3 is not UTF-8; save the file as UTF-8");
  for (const std::string bad : {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80", "\xe0\x80\x80",
                                "\xf0\x80\x80\x80", "\xf8\x88\x80\x80\x80"}) {
    CHECK(error_of("# " + bad).rfind("c.yaml:1:3: document: byte 0x", 0) == 0);
  }
  for (const std::string good :
       {"\xc3\xa9", "\xe2\x82\xac", "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    CHECK(error_of("# " + good + "\n" + entry("op: rmsnorm, dim: 8")) == "");
  }
}

TEST_CASE("config error: UTF-16") {
  CHECK(error_of(std::string("\xff\xfen\0a\0", 6)).rfind("c.yaml:1:1: document: byte 0xff is not UTF-8", 0) == 0);
  CHECK(error_of(std::string("\0n\0a", 4)) == "c.yaml:1:1: document: control character 0x00; remove it");
}

TEST_CASE("config error: control characters") {
  CHECK(error_of("name: a\nsweep: \x04\n") == "c.yaml:2:8: document: control character 0x04; remove it");
  CHECK(error_of("name: a\rsweep: b\n") == "c.yaml:1:8: document: control character 0x0d; remove it");
}

TEST_CASE("config error: broken syntax") {
  CHECK_THAT(error_of(with("batch: [1, 2")), ContainsSubstring("c.yaml:6:1: batch: not valid YAML: "));
  CHECK_THAT(error_of("name: a\n\tsweep: b\n"), ContainsSubstring("c.yaml:2:1: name: not valid YAML: "));
  CHECK_THAT(error_of("name: a\nsweep: {a: b\n"), ContainsSubstring("not valid YAML: "));
  CHECK(error_of("name: 'a\n") == "c.yaml:1:7: name: the quote is never closed; close it");
  CHECK(error_of("name: 'it''s\n") == "c.yaml:1:7: name: the quote is never closed; close it");
  CHECK(error_of("# \xc3\xa9\nname: \"a\\\"\n").rfind("c.yaml:2:7: name: ", 0) == 0);
  CHECK_THAT(error_of("name: 'it''s'\n"), ContainsSubstring("'it's' is no safe folder name"));
}

TEST_CASE("config error: nesting without end") {
  CHECK_THAT(error_of("name: a\nsweep: " + std::string(100000, '[') + std::string(100000, ']')),
             ContainsSubstring("sweep: not valid YAML: "));
}

// --- YAML that says one thing and means another

TEST_CASE("config error: anchors") {
  CHECK(error_of(with("batch: &b 2")) == "c.yaml:5:12: batch: anchors are not taken; remove the '&' name");
  CHECK(error_of(with("batch: &b [2]")) == "c.yaml:5:12: batch: anchors are not taken; remove the '&' name");
  CHECK(error_of("name: a\ndefaults: &d {seq: 1}\n") ==
        "c.yaml:2:11: defaults: anchors are not taken; remove the '&' name");
}

TEST_CASE("config error: aliases") {
  CHECK_THAT(error_of(with("batch: *b")), ContainsSubstring("c.yaml:5:12: batch: "));
  CHECK(error_of("&r name: a\n").rfind("c.yaml:1:1: document: anchors are not taken", 0) == 0);
}

TEST_CASE("config error: merge keys") {
  CHECK(error_of(with("<<: {batch: 2}")) == "c.yaml:5:5: <<: merge keys are not taken; write the keys out");
}

TEST_CASE("config error: tags") {
  CHECK(error_of(with("batch: !!int 2")) == "c.yaml:5:12: batch: tag 'tag:yaml.org,2002:int' is not taken; remove it");
  CHECK(error_of(with("batch: !mine [2]")) == "c.yaml:5:12: batch: tag '!mine' is not taken; remove it");
}

TEST_CASE("config error: repeated keys, on every level") {
  CHECK(error_of("name: a\nsweep: []\nname: b\n") ==
        "c.yaml:3:1: name: repeated key, first on line 1; keep one of them");
  CHECK(error_of(with("batch: 1\n    seq: 2\n    'batch': 3")) ==
        "c.yaml:7:5: batch: repeated key, first on line 5; keep one of them");
  CHECK(error_of(measure("samples: 1, samples: 1")) ==
        "c.yaml:2:23: samples: repeated key, first on line 2; keep one of them");
  CHECK(error_of("name: a\ndefaults: {seq: 1, seq: 2}\n") ==
        "c.yaml:2:20: seq: repeated key, first on line 2; keep one of them");
}

TEST_CASE("config error: keys that are no words") {
  CHECK(error_of(with("? [1, 2]\n    : 3")) == "c.yaml:5:7: sweep: a key is a list or a map; keys are plain words");
  CHECK(error_of(with("? {a: b}\n    : 3")) == "c.yaml:5:7: sweep: a key is a list or a map; keys are plain words");
  CHECK(error_of(with(": 3")) == "c.yaml:5:5: sweep: a key is missing before ':'; write one");
}

// --- keys

TEST_CASE("config error: unknown keys, with the nearest one") {
  CHECK(error_of("nmae: a\n") == "c.yaml:1:1: nmae: unknown key; did you mean 'name'?");
  CHECK(error_of("name: a\nsweeps: []\n") == "c.yaml:2:1: sweeps: unknown key; did you mean 'sweep'?");
  CHECK(error_of(with("btach: 2")) == "c.yaml:5:5: btach: unknown key; did you mean 'batch'?");
  CHECK(error_of(with("kvheads: 2")) == "c.yaml:5:5: kvheads: unknown key; did you mean 'kv_heads'?");
  CHECK(error_of(with("Batch: 2")) == "c.yaml:5:5: Batch: unknown key; did you mean 'batch'?");
  CHECK(error_of(measure("sample: 2")) == "c.yaml:2:11: sample: unknown key; did you mean 'samples'?");
  CHECK(error_of("name: a\ndefaults: {dtipe: fp16}\nsweep: []\n") ==
        "c.yaml:2:12: dtipe: unknown key; did you mean 'dtype'?");
}

TEST_CASE("config error: unknown keys near to none list what is known") {
  CHECK(error_of("name: a\ncompletely_other: 1\n") ==
        "c.yaml:2:1: completely_other: unknown key; known: name, defaults, measure, sweep");
  CHECK_THAT(error_of(with(std::string(300, 'q') + ": 2")), ContainsSubstring("unknown key; known: op, model, dim"));
}

TEST_CASE("config error: op and model in defaults") {
  CHECK(error_of("name: a\ndefaults: {op: qkv}\nsweep: [{op: qkv}]\n") ==
        "c.yaml:2:12: op: unknown key in defaults; write it in each entry of sweep");
  CHECK(error_of("name: a\ndefaults: {model: seed}\nsweep: [{op: qkv}]\n") ==
        "c.yaml:2:12: model: unknown key in defaults; write it in each entry of sweep");
}

TEST_CASE("config error: missing keys") {
  CHECK(error_of("sweep: [{op: rmsnorm, dim: 8}]\n") ==
        "c.yaml:1:1: name: is missing; name the run: its output folder is called so");
  CHECK(error_of("name: a\n") == "c.yaml:1:1: sweep: is missing; list what to run, each entry with an op");
  CHECK(error_of("name: a\nsweep:\n  - dim: 8\n") == "c.yaml:3:5: op: is missing; name an op or a list of ops");
}

TEST_CASE("config error: keys that no op of the entry uses") {
  CHECK(error_of(entry("op: rmsnorm, dim: 8, hidden: 8")) ==
        "c.yaml:2:31: hidden: is not used by rmsnorm; remove it or move it to defaults");
  CHECK(error_of(entry("op: [rmsnorm, mlp], dim: 8, hidden: 8, past: 8")) ==
        "c.yaml:2:49: past: is not used by rmsnorm, mlp; remove it or move it to defaults");
  CHECK(error_of(entry("op: swiglu, hidden: 8, dim: 8")).rfind("c.yaml:2:33: dim: is not used by swiglu", 0) == 0);
  CHECK(error_of(entry("op: qkv, model: seed, causal: true")).rfind("c.yaml:2:32: causal: is not used by qkv", 0) == 0);
  CHECK(error_of(entry("op: attention, dim: 8, heads: 2, rope: half")).rfind("c.yaml:2:43: rope: is not used", 0) == 0);
  CHECK(error_of(entry("op: attention, dim: 8, heads: 2, eps: 1")).rfind("c.yaml:2:43: eps: is not used", 0) == 0);
  CHECK(error_of(entry("op: mlp, dim: 8, hidden: 8, heads: 2")).rfind("c.yaml:2:38: heads: is not used", 0) == 0);
}

TEST_CASE("config error: keys without a value") {
  CHECK(error_of(with("batch:")) == "c.yaml:5:5: batch: has no value; give one or remove the key");
  CHECK(error_of(with("batch: ~")) == "c.yaml:5:5: batch: has no value; give one or remove the key");
  CHECK(error_of(with("batch: null")) == "c.yaml:5:5: batch: has no value; give one or remove the key");
  CHECK(error_of(with("batch: [1, ~]")) == "c.yaml:5:16: batch: is null; give a plain decimal integer of at least 1");
  CHECK(error_of("name: a\nmeasure:\nsweep: []\n") == "c.yaml:2:1: measure: has no value; give it keys");
  CHECK(error_of("name: a\ndefaults:\nsweep: []\n") == "c.yaml:2:1: defaults: has no value; give it keys");
  CHECK(error_of("name: a\nsweep:\n") == "c.yaml:2:1: sweep: has no value; give one or remove the key");
  CHECK(error_of("name:\nsweep: []\n") == "c.yaml:1:1: name: has no value; give one or remove the key");
}

TEST_CASE("config error: empty lists") {
  const std::string expected = "is an empty list; give at least one value";
  CHECK(error_of(with("batch: []")) == "c.yaml:5:12: batch: " + expected);
  CHECK(error_of(with("variants: []")) == "c.yaml:5:15: variants: " + expected);
  CHECK(error_of("name: a\nsweep: []\n") == "c.yaml:2:8: sweep: " + expected);
  CHECK(error_of(measure("cache: []")) == "c.yaml:2:18: cache: " + expected);
  CHECK(error_of(entry("op: [], dim: 8")) == "c.yaml:2:14: op: " + expected);
}

TEST_CASE("config error: maps and lists in the wrong place") {
  CHECK(error_of("name: a\nmeasure: 3\nsweep: []\n") ==
        "c.yaml:2:10: measure: is not a map; write 'key: value' lines under it");
  CHECK(error_of("name: a\ndefaults: [3]\nsweep: []\n") ==
        "c.yaml:2:11: defaults: is not a map; write 'key: value' lines under it");
  CHECK(error_of("name: a\nsweep: {op: qkv}\n") == "c.yaml:2:8: sweep: is not a list; start each entry with '- op:'");
  CHECK(error_of("name: a\nsweep: [qkv]\n") ==
        "c.yaml:2:9: sweep: an entry is not a map; write '- op: NAME' and more keys under it");
  CHECK(error_of(with("batch: {a: 1}")) == "c.yaml:5:12: batch: is a map; give a plain decimal integer of at least 1");
  CHECK(error_of(with("batch: [[1]]")) == "c.yaml:5:13: batch: is a list; give a plain decimal integer of at least 1");
  CHECK(error_of(measure("warmup: [1, 2]")) ==
        "c.yaml:2:19: warmup: is a list; give a plain decimal integer of at least 0");
  CHECK(error_of(measure("load: [burst, sustained]")) == "c.yaml:2:17: load: is a list; give text");
}

// --- values

TEST_CASE("config error: integers are plain decimal") {
  for (const std::string bad :
       {"0x10", "1e3", "1_000", "+5", "007", "5.0", "two", "1 2", "0b1", "0o7", "--1", ".5", "1,5e", "\xd9\xa3"}) {
    CAPTURE(bad);
    CHECK(error_of(with("batch: " + bad)) == "c.yaml:5:12: batch: '" + bad +
                                                 "' is not a plain decimal integer; give a plain decimal integer of at "
                                                 "least 1");
  }
  CHECK(error_of(with("batch: \"2\"")) ==
        "c.yaml:5:12: batch: '2' is text, for its quotes; give a plain decimal integer of at least 1");
  CHECK_THAT(error_of(with("batch: true")), ContainsSubstring("c.yaml:5:12: batch: 'true' is not a plain decimal"));
}

TEST_CASE("config error: sizes out of range") {
  for (const std::string key : {"dim", "heads", "kv_heads", "batch", "seq"}) {
    const std::string place = "c.yaml:5:" + std::to_string(7 + key.size()) + ": " + key + ": ";
    CHECK(error_of(with(key + ": 0")) == place + "0 is too small; give at least 1");
    CHECK(error_of(with(key + ": -3")) == place + "-3 is too small; give at least 1");
  }
  CHECK(error_of(entry("op: swiglu, hidden: 0")) == "c.yaml:2:30: hidden: 0 is too small; give at least 1");
  CHECK(error_of(with("past: -1")) == "c.yaml:5:11: past: -1 is too small; give at least 0");
  CHECK(error_of(with("batch: 9223372036854775808")) ==
        "c.yaml:5:12: batch: 9223372036854775808 is too large; give at most 9223372036854775807");
  CHECK(error_of(with("batch: -9999999999999999999999")) ==
        "c.yaml:5:12: batch: -9999999999999999999999 is too small; give at least 1");
  CHECK(error_of(with("batch: [1, 0]")) == "c.yaml:5:16: batch: 0 is too small; give at least 1");
}

TEST_CASE("config error: seeds") {
  CHECK(error_of(with("seed: 18446744073709551616")) ==
        "c.yaml:5:11: seed: 18446744073709551616 is too large; give a plain decimal integer from 0 to "
        "18446744073709551615");
  CHECK_THAT(error_of(with("seed: -1")), ContainsSubstring("c.yaml:5:11: seed: '-1' is not a plain decimal integer"));
}

TEST_CASE("config error: numbers") {
  for (const std::string bad :
       {"0", "-1", "nan", ".nan", "inf", ".inf", "1e400", "0x1p3", "1.", ".5", "1e", "+1", "1e-5x", "a"}) {
    CAPTURE(bad);
    CHECK(error_of(with("eps: " + bad)) ==
          "c.yaml:5:10: eps: '" + bad + "' is out of place; give a finite number above 0, such as 0.01 or 1e-5");
  }
  CHECK_THAT(error_of(with("eps: '1'")), ContainsSubstring("c.yaml:5:10: eps: '1' is text, for its quotes"));
  CHECK(error_of(with("eps: 1e-40")) == "c.yaml:5:10: eps: 1e-40 does not fit fp32; give 1.2e-38 to 3.4e38");
  CHECK(error_of(with("rope_theta: 0.5")) == "c.yaml:5:17: rope_theta: 0.5 is too small; give a number of at least 1");
  CHECK(error_of(with("rope_theta: 500000.0")) == "");
  CHECK(error_of(with("eps: 1E-6")) == "");
}

TEST_CASE("config error: bools are true or false") {
  for (const std::string bad : {"yes", "no", "True", "1", "on", "tru"}) {
    CAPTURE(bad);
    CHECK(error_of(entry("op: attention, dim: 8, heads: 2, causal: " + bad)) ==
          "c.yaml:2:51: causal: '" + bad + "' is not a bool; give true or false");
  }
  CHECK(error_of(measure("traffic: yes")) == "c.yaml:2:20: traffic: 'yes' is not a bool; give true or false");
  CHECK(error_of(measure("graph: [true, yes]")) == "c.yaml:2:25: graph: 'yes' is not a bool; give true or false");
  CHECK_THAT(error_of(measure("traffic: 'true'")), ContainsSubstring("is text, for its quotes; give true or false"));
}

TEST_CASE("config error: words, with the nearest one") {
  CHECK(error_of(entry("op: rmsnrom, dim: 8")) == "c.yaml:2:14: op: 'rmsnrom' is unknown; did you mean 'rmsnorm'?");
  CHECK(error_of(entry("op: [qkv, mpl], model: seed")) == "c.yaml:2:20: op: 'mpl' is unknown; did you mean 'mlp'?");
  CHECK(error_of(with("dtype: fp17")) == "c.yaml:5:12: dtype: 'fp17' is unknown; did you mean 'fp16'?");
  CHECK(error_of(with("dtype: int8")) == "c.yaml:5:12: dtype: 'int8' is unknown; known: fp16, bf16, fp32, auto");
  CHECK(error_of(with("rope: halves")) == "c.yaml:5:11: rope: 'halves' is unknown; did you mean 'half'?");
  CHECK(error_of(with("inputs: seeds")) == "c.yaml:5:13: inputs: 'seeds' is unknown; did you mean 'seed'?");
  CHECK(error_of(measure("cache: [cold, warm]")) == "c.yaml:2:25: cache: 'warm' is unknown; known: cold, hot");
  CHECK(error_of(measure("load: bursts")) == "c.yaml:2:17: load: 'bursts' is unknown; did you mean 'burst'?");
  CHECK(error_of(measure("verify: ful")) == "c.yaml:2:19: verify: 'ful' is unknown; did you mean 'full'?");
}

TEST_CASE("config error: an unknown model, with the nearest one") {
  CHECK(error_of(entry("op: qkv, model: llama-8b")) ==
        "c.yaml:2:26: model: 'llama-8b' is unknown; did you mean 'llama3-8b'?");
  CHECK_THAT(error_of(entry("op: qkv, model: zzzzzzzzzzzzzzzz")),
             ContainsSubstring("c.yaml:2:26: model: 'zzzzzzzzzzzzzzzz' is unknown; known: seed, llama2-7b"));
}

TEST_CASE("config error: measure's ranges") {
  CHECK(error_of(measure("warmup: -1")) == "c.yaml:2:19: warmup: -1 is too small; give at least 0");
  CHECK(error_of(measure("samples: 0")) == "c.yaml:2:20: samples: 0 is too small; give at least 1");
  CHECK(error_of(measure("samples: 3000000000")) ==
        "c.yaml:2:20: samples: 3000000000 is too large; give at most 1000000");
  CHECK(error_of(measure("ci: 1")) == "c.yaml:2:15: ci: 1 is too large; give a share below 1");
  CHECK_THAT(error_of(measure("max_seconds: 0")), ContainsSubstring("c.yaml:2:24: max_seconds: '0' is out of place"));
  CHECK(error_of(measure("verify: 0")) == "c.yaml:2:19: verify: 0 is too small; give at least 1");
  CHECK(error_of(measure("verify: 1.5")) ==
        "c.yaml:2:19: verify: '1.5' is not a plain decimal integer; give a plain decimal integer of at least 1");
}

TEST_CASE("config error: a name that is no safe folder name") {
  const std::string right = "use at most 100 letters, digits, '.', '_' and '-', a letter or digit first";
  for (const std::string bad : {"../x", "a/b", ".hidden", "-o", "a b", "a\\b", "caf\xc3\xa9", "a:b"}) {
    CAPTURE(bad);
    CHECK(error_of("name: " + bad + "\n") == "c.yaml:1:7: name: '" + bad + "' is no safe folder name; " + right);
  }
  CHECK_THAT(error_of("name: " + std::string(101, 'a') + "\n"), ContainsSubstring("aaa...' is no safe folder name"));
  CHECK(error_of("name: ''\n") == "c.yaml:1:7: name: is empty; give text");
  CHECK(error_of("name: [a]\n") == "c.yaml:1:7: name: is a list; give text");
}

TEST_CASE("config error: variants") {
  CHECK(error_of(with("variants: [naive, '']")) == "c.yaml:5:23: variants: is empty; give text");
  CHECK(error_of(with("variants: [naive, naive]")) == "c.yaml:5:23: variants: 'naive' is here twice; name each once");
  CHECK(error_of("name: a\ndefaults: {variants: ['']}\nsweep: [{op: rmsnorm, dim: 8}]\n") ==
        "c.yaml:2:23: variants: is empty; give text");
}

TEST_CASE("config error: a mistake in defaults is found though every entry overrides it") {
  CHECK(error_of("name: a\ndefaults: {batch: 0}\nsweep: [{op: rmsnorm, dim: 8, batch: 1}]\n") ==
        "c.yaml:2:19: batch: 0 is too small; give at least 1");
}

// --- shapes

TEST_CASE("config error: sizes that an op needs and nobody gives") {
  CHECK(error_of(entry("op: rmsnorm")) == "c.yaml:2:14: dim: is missing: rmsnorm needs it; give it, or a model");
  CHECK(error_of(entry("op: [rmsnorm, mlp], dim: 8")) ==
        "c.yaml:2:24: hidden: is missing: mlp needs it; give it, or a model");
  CHECK(error_of(entry("op: attention, dim: 8")) ==
        "c.yaml:2:14: heads: is missing: attention needs it; give it, or a model");
}

TEST_CASE("config error: heads that do not divide") {
  CHECK(error_of(with("heads: 6")) == "c.yaml:5:12: heads: 6 heads do not divide dim 4096; give a divisor");
  CHECK(error_of(with("dim: 100")) == "c.yaml:4:12: heads: 32 heads do not divide dim 100; give a divisor");
  CHECK(error_of(with("kv_heads: 5")) == "c.yaml:5:15: kv_heads: 5 kv_heads do not divide 32 heads; give a divisor");
  CHECK(error_of(with("kv_heads: 64")) == "c.yaml:5:15: kv_heads: 64 kv_heads do not divide 32 heads; give a divisor");
  CHECK(error_of(entry("op: attention, dim: 12, heads: [2, 5]")) ==
        "c.yaml:2:45: heads: 5 heads do not divide dim 12; give a divisor");
}

TEST_CASE("config error: an odd head_dim where pairs rotate") {
  const std::string expected = "heads: head_dim 9 (dim 63 / heads 7) is odd, and rope rotates pairs; give an even one";
  CHECK(error_of(entry("op: rope, dim: 63, heads: 7")) == "c.yaml:2:36: " + expected);
  CHECK(error_of(entry("op: qkv, dim: 63, heads: 7")) == "c.yaml:2:35: " + expected);
  CHECK(error_of(entry("op: block, dim: 63, heads: 7, hidden: 8")) == "c.yaml:2:37: " + expected);
  CHECK(error_of(entry("op: attention, dim: 63, heads: 7")) == "");
}

TEST_CASE("config error: byte counts over 2^63") {
  const std::string expected =
      "the case is too large: its tensors and the traffic over them pass 2^63 bytes; give smaller sizes";
  CHECK(error_of(entry("op: rmsnorm, dim: 9223372036854775807")) == "c.yaml:2:28: dim: " + expected);
  CHECK(error_of(entry("op: rmsnorm, dim: 8, batch: 4611686018427387904")) == "c.yaml:2:38: batch: " + expected);
  CHECK(error_of(entry("op: attention, dim: 8, heads: 2, seq: 4294967296")) == "c.yaml:2:48: seq: " + expected);
  CHECK(error_of(entry("op: rope, dim: 8, heads: 2, past: 9223372036854775807")) == "c.yaml:2:44: past: " + expected);
  CHECK(error_of(entry("op: rmsnorm, dim: 4096, batch: 500000")) == "");
}

TEST_CASE("config error: a product of lists without end") {
  std::string list = "[1";
  for (int i = 2; i <= 400; ++i) list += ", " + std::to_string(i);
  list += "]";
  CHECK_THAT(error_of(with("batch: " + list + "\n    seq: " + list)),
             ContainsSubstring("c.yaml:3:5: op: the entry's lists make more than 100000 cases; split it"));
}

// --- the registry of models

TEST_CASE("models: the published shapes") {
  std::set<std::string> names;
  for (const Model& model : load_models()) {
    names.insert(model.name);
    CAPTURE(model.name);
    CHECK_FALSE(model.source.empty());
    CHECK(model.dim % model.heads == 0);
    CHECK(model.heads % model.kv_heads == 0);
    CHECK(model.eps == 1e-5);
    CHECK((model.rope == Pairing::interleaved) == (model.name == "seed"));
    CHECK(model.causal == (model.name != "seed"));
    const std::int64_t head_dim = model.dim / model.heads;
    CHECK(head_dim == (model.name == "llama3.2-1b" ? 64 : 128));
  }
  CHECK(names == std::set<std::string>{"seed", "llama2-7b", "llama3-8b", "llama3-70b", "llama3.2-1b", "llama3.2-3b",
                                       "llama3.1-405b", "mistral-7b"});
}

/// Points FUSEBENCH_CONFIGS somewhere for a scope.
class ConfigsFolder {
 public:
  explicit ConfigsFolder(const fs::path& path) { ::setenv("FUSEBENCH_CONFIGS", path.c_str(), 1); }
  ConfigsFolder(const ConfigsFolder&) = delete;
  ConfigsFolder& operator=(const ConfigsFolder&) = delete;
  ~ConfigsFolder() { ::unsetenv("FUSEBENCH_CONFIGS"); }
};

TEST_CASE("models: another folder, and its mistakes") {
  const TempFolder folder;
  const ConfigsFolder configs(folder.path());
  const std::string good =
      "{dim: 8, hidden: 9, heads: 2, kv_heads: 1, rope_theta: 10, rope: half, eps: 1e-4, causal: true, source: here}";
  folder.write("models.yaml", "tiny: " + good + "\n");
  const std::vector<Model> models = load_models();
  REQUIRE(models.size() == 1);
  CHECK(models[0].name == "tiny");
  CHECK(models[0].hidden == 9);
  CHECK(models[0].kv_heads == 1);
  CHECK(models[0].rope_theta == 10);
  CHECK(models[0].eps == 1e-4);

  const auto error = [&](const std::string& text) -> std::string {
    folder.write("models.yaml", text);
    try {
      load_models();
    } catch (const ConfigError& problem) {
      return std::string(problem.what()).substr(folder.path().string().size() + 1);
    }
    return "";
  };
  CHECK(error("tiny: {dim: 8}\n") == "models.yaml:1:7: hidden: is missing; a model gives every one of its keys");
  CHECK(error("tiny: " + good + "\ntiny: " + good + "\n") ==
        "models.yaml:2:1: tiny: repeated key, first on line 1; keep one of them");
  CHECK(error("tiny: {dims: 8}\n") == "models.yaml:1:8: dims: unknown key; did you mean 'dim'?");
  CHECK(error("tiny: 8\n") == "models.yaml:1:7: tiny: is not a map; write 'key: value' lines under it");

  fs::remove(folder.path() / "models.yaml");
  CHECK_THROWS_WITH(load_models(), ContainsSubstring("models.yaml: cannot be read: No such file or directory"));
  // a sweep without a model needs no registry
  const fs::path sweep = folder.write("sweep.yaml", entry("op: rmsnorm, dim: 8"));
  CHECK(load_config(sweep, Backend::cpu).cases.size() == 1);
}

// --- the configurations that come with the program

Config shipped(const std::string& name, Backend backend = Backend::cuda) {
  return load_config(fs::path(FUSEBENCH_SOURCE_DIR) / "configs" / name, backend);
}

TEST_CASE("shipped configs load on both backends") {
  int configs = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(fs::path(FUSEBENCH_SOURCE_DIR) / "configs")) {
    if (file.path().extension() != ".yaml" || file.path().filename() == "models.yaml") continue;
    ++configs;
    CAPTURE(file.path().filename().string());
    for (const Backend backend : {Backend::cpu, Backend::cuda}) {
      const Config config = load_config(file.path(), backend);
      CHECK_FALSE(config.cases.empty());
      for (const SweepCase& swept : config.cases) CHECK(canonical(swept.c) == swept.c);
    }
  }
  CHECK(configs >= 6);
}

std::size_t count_cases(const Config& config, const std::function<bool(const Case&)>& holds) {
  return static_cast<std::size_t>(
      std::count_if(config.cases.begin(), config.cases.end(), [&](const SweepCase& swept) { return holds(swept.c); }));
}

TEST_CASE("quick covers every op, grouped heads, a cache and both pairings") {
  const Config config = shipped("quick.yaml");
  for (const Op op : kOps) {
    CAPTURE(name_of(op));
    CHECK(count_cases(config, [&](const Case& c) { return c.op == op; }) > 0);
    if (uses_of(op).past) CHECK(count_cases(config, [&](const Case& c) { return c.op == op && c.past > 0; }) > 0);
    if (uses_of(op).heads) {
      CHECK(count_cases(config, [&](const Case& c) { return c.op == op && c.kv_heads < c.heads; }) > 0);
    }
    if (uses_of(op).rope) {
      for (const Pairing pairing : {Pairing::interleaved, Pairing::half}) {
        CHECK(count_cases(config, [&](const Case& c) { return c.op == op && c.rope == pairing; }) > 0);
      }
    }
    if (uses_of(op).causal) CHECK(count_cases(config, [&](const Case& c) { return c.op == op && c.causal; }) > 0);
  }
}

TEST_CASE("seed_check and seed_benchmark are the seed's own") {
  const Config check = shipped("seed_check.yaml");
  CHECK(check.measure.verify.full);
  CHECK(check.cases.size() == 6);
  CHECK(count_cases(check, [](const Case& c) {
          return c.op == Op::block && c.inputs == Inputs::seed && !c.causal && c.rope == Pairing::interleaved;
        }) == 6);
  const auto has = [&](std::int64_t dim, std::int64_t hidden, std::int64_t heads, std::int64_t batch,
                       std::int64_t seq) {
    return count_cases(check, [&](const Case& c) {
             return c.dim == dim && c.hidden == hidden && c.heads == heads && c.kv_heads == heads && c.batch == batch &&
                    c.seq == seq;
           }) == 2;
  };
  CHECK(has(512, 2048, 8, 2, 128));
  CHECK(has(384, 1536, 6, 1, 33));
  CHECK(has(256, 1024, 4, 1, 1));

  const Config benchmark = shipped("seed_benchmark.yaml");
  CHECK(count_cases(benchmark, [](const Case& c) {
          return c.op == Op::block && c.dim == 4096 && c.hidden == 14336 && c.heads == 32 && c.kv_heads == 32 &&
                 c.batch == 2 && c.seq == 2048 && !c.causal && c.rope == Pairing::interleaved;
        }) == 2);
}

TEST_CASE("hostile holds the inputs that broke others") {
  const Config config = shipped("hostile.yaml");
  const auto has = [&](const std::function<bool(const Case&)>& holds) {
    for (const DType dtype : {DType::fp16, DType::bf16}) {
      if (count_cases(config, [&](const Case& c) { return c.dtype == dtype && holds(c); }) == 0) return false;
    }
    return true;
  };
  for (const std::int64_t seq : {33, 65}) {
    CHECK(has(
        [&](const Case& c) { return c.op == Op::attention && c.head_dim() == 64 && c.seq == seq && c.batch == 2; }));
  }
  for (std::int64_t past = 0; past <= 5; ++past) {
    CHECK(has([&](const Case& c) { return c.op == Op::attention && c.causal && c.seq == 4 && c.past == past; }));
  }
  for (const std::int64_t past : {2047, 2048}) {
    CHECK(has([&](const Case& c) { return c.op == Op::attention && c.seq == 1 && c.past == past; }));
  }
  for (const std::int64_t dim : {3584, 5120, 16384}) {
    CHECK(has([&](const Case& c) { return c.op == Op::rmsnorm && c.dim == dim; }));
    CHECK(has([&](const Case& c) { return c.op == Op::add_rmsnorm && c.dim == dim; }));
  }
  for (const std::int64_t past : {0, 1, 4095, 131071}) {
    for (const Pairing pairing : {Pairing::interleaved, Pairing::half}) {
      CHECK(has([&](const Case& c) { return c.op == Op::rope && c.past == past && c.rope == pairing; }));
    }
  }
  for (const Op op : {Op::qkv, Op::attn_out, Op::mlp}) {
    for (std::int64_t tiles = 1; tiles <= 5; ++tiles) {
      CHECK(has([&](const Case& c) { return c.op == op && c.dim == 64 * tiles; }));
      CHECK(has([&](const Case& c) { return c.op == op && c.dim == 32 * tiles; }));
    }
    CHECK(has([&](const Case& c) { return c.op == op && c.dim % 8 != 0; }));
  }
  for (const auto& [heads, kv_heads] : {std::pair{32, 8}, {8, 1}, {6, 3}}) {
    CHECK(has([&, h = heads, kv = kv_heads](const Case& c) {
      return c.op == Op::block && c.heads == h && c.kv_heads == kv;
    }));
  }
  for (const std::int64_t head_dim : {2, 4, 8, 16, 32, 64, 80, 96, 112, 128, 192, 256}) {
    CHECK(has([&](const Case& c) { return c.op == Op::attention && c.head_dim() == head_dim; }));
  }
  for (const Op op : {Op::rmsnorm, Op::add_rmsnorm, Op::rope, Op::swiglu}) {
    CHECK(count_cases(config, [&](const Case& c) { return c.op == op && c.dtype == DType::fp32; }) > 0);
  }
}

}  // namespace
}  // namespace fusebench
