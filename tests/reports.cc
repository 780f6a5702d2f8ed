#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/row.h"
#include "reports/columns.h"
#include "reports/csv.h"
#include "reports/dictionary.h"
#include "reports/format.h"
#include "reports/html.h"
#include "reports/markdown.h"
#include "reports/records.h"
#include "reports/sha256.h"
#include "reports/summary.h"
#include "reports/web_assets.h"
#include "reports/write.h"
#include "tests/catch.h"
#include "tests/files.h"

using namespace fusebench;
using fusebench::testing::read_file;
using fusebench::testing::TempFolder;
using reports::Json;
using reports::Records;

namespace {

Row passed(const std::string& variant, Op op = Op::block) {
  Row row;
  row.c = canonical({.op = op,
                     .dtype = DType::bf16,
                     .dim = 4096,
                     .hidden = 14336,
                     .heads = 32,
                     .kv_heads = 8,
                     .batch = 2,
                     .seq = 2048,
                     .causal = true,
                     .rope = Pairing::half});
  row.variant = variant;
  row.backend = Backend::cuda;
  row.verdict = Verdict::pass;
  row.kernel = "gemm_portable";
  row.check = Verification{.rel_l2 = 2e-4,
                           .max_abs = 1e-3,
                           .budget_rel_l2 = 5e-4,
                           .budget_max_abs = 4e-3,
                           .nonfinite = 0,
                           .seed_allclose = true,
                           .rows_checked = 64,
                           .rows_total = 4096};
  row.samples_us.assign(50, variant == "naive" ? 12345.678 : 1234.5678);
  if (variant != "naive") row.speedup_vs_naive = Ratio{.value = 10.5, .lo = 10.25, .hi = 10.75};
  if (variant == "fused") row.speedup_vs_cublas = Ratio{.value = 1.25, .lo = 1.21, .hi = 1.29};
  row.bytes_compulsory = 500'000'000;
  row.tensors = {{.name = "x", .storage = "op", .dtype = DType::bf16, .dims = {2, 2048, 4096}}};
  row.bytes_modelled = std::int64_t{600'000'000};
  row.flops = 2e12;
  row.launches = 2;
  row.repro = "fusebench run x.yaml --filter 'block*'";
  for (const char* name : {"norm", "product"}) {
    StepRow& step = row.steps.emplace_back();
    step.name = name;
    step.kernel = "gemm_portable";
    step.bytes_read = 100;
  }
  return row;
}

Row failed(const std::string& reason) {
  Row row = passed("fused", Op::mlp);
  row.verdict = Verdict::fail;
  row.reason = reason;
  row.check.value->rel_l2 = 5e-3;
  return row;
}

Json header() {
  return Json::parse(R"({"schema": 1, "run_id": "r1", "name": "llama <3>", "command": "fusebench run a.yaml",
                         "device": {"name": "H200", "l2_bytes": 62914560}, "driver": null, "stages_s": {}})");
}

std::string lines_of(const std::vector<Row>& rows) {
  std::string text = reports::to_line(header());
  for (const Row& row : rows) text += reports::to_line(to_json(row));
  return text;
}

Records parse(const std::string& text) {
  std::istringstream in(text);
  return reports::read_records(in);
}

Records records_of(const std::vector<Row>& rows) { return parse(lines_of(rows)); }

// An independent reader of RFC 4180.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> line;
  std::string cell;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
        cell += text[++i];
      } else if (c == '"') {
        quoted = false;
      } else {
        cell += c;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      line.push_back(std::exchange(cell, {}));
    } else if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
      ++i;
      line.push_back(std::exchange(cell, {}));
      lines.push_back(std::exchange(line, {}));
    } else {
      cell += c;
    }
  }
  CHECK(cell.empty());  // the last line ends too
  CHECK(line.empty());
  return lines;
}

std::size_t column_of(std::string_view name) {
  const auto columns = reports::columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return i;
  }
  FAIL("no column " << name);
  return 0;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

std::size_t longest_line(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  std::size_t longest = 0;
  while (std::getline(in, line)) longest = std::max(longest, line.size());
  return longest;
}

}  // namespace

TEST_CASE("columns are named once, and every reason is a column") {
  for (const auto columns : {reports::columns(), reports::step_columns()}) {
    std::vector<std::string> names;
    for (const reports::Column& column : columns) names.emplace_back(column.name);
    for (const reports::Column& column : columns) {
      CAPTURE(std::string(column.name));
      CHECK(std::count(names.begin(), names.end(), column.name) == 1);
      CHECK_FALSE(column.description.empty());
      if (!column.reason.empty()) CHECK(std::count(names.begin(), names.end(), column.reason) == 1);
    }
  }
}

TEST_CASE("docs/records.md is what the table of columns makes") {
  const std::filesystem::path file = std::filesystem::path(FUSEBENCH_SOURCE_DIR) / "docs" / "records.md";
  if (std::getenv("FUSEBENCH_WRITE_DOCS") != nullptr) reports::write_atomically(file, reports::data_dictionary());
  INFO("run this test with FUSEBENCH_WRITE_DOCS=1 to write it anew");
  CHECK(read_file(file) == reports::data_dictionary());
}

TEST_CASE("the lines of the data dictionary's tables have as many cells as their heads") {
  std::istringstream in(reports::data_dictionary());
  std::string line;
  std::ptrdiff_t bars = 0;
  while (std::getline(in, line)) {
    const auto own = std::count(line.begin(), line.end(), '|');
    CAPTURE(line);
    if (bars > 0 && own > 0) CHECK(own == bars);
    bars = own;
  }
}

TEST_CASE("records: a header, then rows") {
  const Records records = records_of({passed("naive"), passed("fused")});
  CHECK(records.header.at("name") == "llama <3>");
  CHECK(records.rows.size() == 2);
  CHECK(records.notes.empty());
  CHECK(reports::text_of(records.rows[1], "variant") == "fused");
  CHECK(reports::number_of(records.rows[1], "median_us") == Approx(1234.5678));
}

TEST_CASE("records: wherever the file is cut off, what is whole is read, and the rest is told") {
  const std::string text = lines_of({passed("naive"), passed("fused")});
  const std::size_t header_end = text.find('\n') + 1;
  const std::size_t first_end = text.find('\n', header_end) + 1;
  for (std::size_t length = first_end; length <= text.size(); length += 97) {
    const Records records = parse(text.substr(0, length));
    CAPTURE(length);
    CHECK(records.rows.size() == 1);
    const bool partial = length > first_end;
    REQUIRE(records.notes.size() == (partial ? 1 : 0));
    if (partial) CHECK_THAT(records.notes[0], ContainsSubstring("line 3 is cut off"));
  }
  CHECK(parse(text.substr(0, text.size() - 1)).rows.size() == 2);  // only the newline is missing
  CHECK(parse(text.substr(0, header_end / 2)).header.is_null());
}

TEST_CASE("records: damage in the middle loses its line alone") {
  const std::string text = lines_of({passed("naive")}) + "{\"case_id\": \n" + "[1]\n\n" + lines_of({passed("fused")});
  const Records records = parse(text);
  CHECK(records.rows.size() == 2);
  REQUIRE(records.notes.size() == 3);  // the broken line, the array, the second header
  CHECK_THAT(records.notes[0], ContainsSubstring("line 3"));
}

TEST_CASE("records: a line nested without end loses its line alone, and text may hold any brackets") {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  Json row = Json::parse(lines_of({passed("fused")}).substr(lines_of({}).size()));
  row["reason"] = std::string(200, '[') + "\\\"" + std::string(200, '{');
  const Records records = parse(R"({"schema": 1, "x": )" + deep + "}\n" + R"({"case_id": "a", "x": )" + deep + "}\n" +
                                row.dump() + "\n" + row.dump() + "\n");
  CHECK(records.rows.size() == 2);
  CHECK(reports::text_of(records.rows[0], "reason") == row["reason"]);
  REQUIRE(records.notes.size() == 3);  // both lines, and that there is no header
  CHECK_THAT(records.notes[1], ContainsSubstring("line 2 is nested deeper than 100 levels"));
}

TEST_CASE("records: an empty file and a file of rows alone") {
  CHECK(parse("").rows.empty());
  CHECK(parse("").notes.size() == 2);
  const std::string text = lines_of({passed("fused")});
  const Records headless = parse(text.substr(text.find('\n') + 1));
  CHECK(headless.rows.size() == 1);
  CHECK(headless.header.is_null());
  CHECK_THAT(headless.notes.at(0), ContainsSubstring("no header"));
}

TEST_CASE("records: a file that cannot be read is named") {
  CHECK_THROWS_WITH(reports::read_records(std::filesystem::path("/nonexistent/results.jsonl")),
                    ContainsSubstring("/nonexistent/results.jsonl"));
  const TempFolder folder;
  CHECK_THROWS_WITH(reports::read_records(folder.path()), ContainsSubstring("folder"));
}

TEST_CASE("records: values of another type count as missing") {
  const Json row = Json::parse(R"({"case_id": 7, "median_us": "fast", "steps": {"a": 1}, "graph": "yes"})");
  CHECK(reports::text_of(row, "case_id").empty());
  CHECK_FALSE(reports::number_of(row, "median_us"));
  CHECK(reports::steps_of(row).empty());
  CHECK_FALSE(reports::error_over_budget(row));
}

TEST_CASE("records: a line survives text that is not UTF-8") {
  Row row = failed("path \xff\xfe is odd");
  const Records records = parse(reports::to_line(header()) + reports::to_line(to_json(row)));
  REQUIRE(records.rows.size() == 1);
  CHECK_THAT(reports::text_of(records.rows[0], "reason"), ContainsSubstring("\uFFFD"));
}

TEST_CASE("groups hold a case's variants in one mode") {
  Row hot = passed("fused");
  hot.cache = CacheMode::hot;
  hot.graph = true;
  const Records records = records_of({passed("naive"), passed("naive", Op::mlp), passed("fused"), hot});
  const auto groups = reports::group_by_case(records);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].rows.size() == 2);
  CHECK(groups[0].mode == "cold, sustained");
  CHECK(groups[2].mode == "hot, graph, sustained");
}

TEST_CASE("error over budget is the worse of the two") {
  const Records records = records_of({passed("fused"), failed("x")});
  CHECK(reports::error_over_budget(records.rows[0]) == Approx(0.4));
  CHECK(reports::error_over_budget(records.rows[1]) == Approx(10));
}

TEST_CASE("figures for people") {
  CHECK(reports::format_us(1234.5678) == "1235");
  CHECK(reports::format_us(12.345678) == "12.35");
  CHECK(reports::format_us(0.0123456) == "0.01235");
  CHECK(reports::format_us(0) == "0");
  CHECK(reports::format_mb(600'000'000) == "600.0");
  CHECK(reports::format_percent(0.413) == "41%");
  CHECK(reports::format_percent(0.0001) == "<1%");
  CHECK(reports::format_percent(0) == "0%");
  CHECK(reports::format_percent(1.001) == "101%");  // over the budget never reads 100%
  CHECK(reports::format_percent(50) == ">999%");
}

TEST_CASE("results.csv: one header, the table's columns, one line a row") {
  const auto lines = parse_csv(reports::results_csv(records_of({passed("naive"), failed("say \"no\", \r\nplease")})));
  REQUIRE(lines.size() == 3);
  const auto columns = reports::columns();
  REQUIRE(lines[0].size() == columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) CHECK(lines[0][i] == columns[i].name);
  for (const auto& line : lines) CHECK(line.size() == columns.size());
  CHECK(lines[2][column_of("reason")] == "say \"no\", \r\nplease");
  CHECK(lines[1][column_of("median_us")] == "12345.678");
  CHECK(lines[1][column_of("bytes_modelled")] == "600000000");
  CHECK(lines[1][column_of("dram_read_bytes")].empty());
  CHECK(lines[1][column_of("causal")] == "TRUE");
}

TEST_CASE("csv: text that would run as a formula is protected, numbers never are") {
  CHECK(reports::csv_cell("=1+1") == "'=1+1");
  CHECK(reports::csv_cell("+x") == "'+x");
  CHECK(reports::csv_cell("-x") == "'-x");
  CHECK(reports::csv_cell("@x") == "'@x");
  CHECK(reports::csv_cell("\tx") == "'\tx");
  CHECK(reports::csv_cell("\rx") == "\"'\rx\"");
  CHECK(reports::csv_cell("=a,\"b\"") == "\"'=a,\"\"b\"\"\"");
  CHECK(reports::csv_cell(-1.5) == "-1.5");
  CHECK(reports::csv_cell(-7) == "-7");
  CHECK(reports::csv_cell("a=b") == "a=b");
  CHECK(reports::csv_cell("").empty());
  CHECK(reports::csv_cell(nullptr).empty());
  CHECK(reports::csv_cell(0.1) == "0.1");
  CHECK(reports::csv_cell(false) == "FALSE");
}

TEST_CASE("steps.csv: one line a step, with its row's key") {
  const auto lines = parse_csv(reports::steps_csv(records_of({passed("naive"), passed("fused")})));
  REQUIRE(lines.size() == 5);
  const std::size_t keys = reports::key_columns().size();
  CHECK(lines[0].size() == keys + 1 + reports::step_columns().size());
  CHECK(lines[0][keys] == "step");
  CHECK(lines[4][1] == "fused");
  CHECK(lines[4][keys] == "2");
  CHECK(lines[4][keys + 1] == "product");
}

TEST_CASE("csv: a record without some columns leaves their cells empty") {
  const auto lines = parse_csv(reports::results_csv(parse("{\"schema\": 1}\n{\"case_id\": \"a\", \"samples\": 3}\n")));
  REQUIRE(lines.size() == 2);
  CHECK(lines[1].size() == reports::columns().size());
  CHECK(lines[1][0] == "a");
  CHECK(lines[1][column_of("samples")] == "3");
}

namespace {

// The page without what its scripts hold.
std::string markup_of(std::string page) {
  for (std::size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script", at + 1)) {
    const std::size_t open_ends = page.find('>', at) + 1;
    page.erase(open_ends, page.find("</script>", at) - open_ends);
  }
  return page;
}

// What the page was given, read back from it as its script does.
Json data_of(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="records">)";
  const std::size_t from = page.find(open) + open.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

}  // namespace

TEST_CASE("html: text can neither end its script nor run, and nothing is loaded") {
  Row evil = failed("</script><script>alert('1')</script><!-- & \"x\" \x01");
  evil.variant = "<img src=x onerror=y>";
  const std::string page = reports::html_page(records_of({evil}));
  const reports::WebAssets& assets = reports::web_assets();
  // The records' script element, and those of the page.
  CHECK(count(page, "<script") == (assets.echarts.empty() ? 2 : 3));
  CHECK(count(page, "</script>") == (assets.echarts.empty() ? 2 : 3));
  const std::string markup = markup_of(page);
  for (const char* never : {"<img", "<!--", "\x01", "<link", "<a "}) {
    CAPTURE(never);
    CHECK(markup.find(never) == std::string::npos);
  }
  CHECK_THAT(markup, ContainsSubstring("<title>fusebench: llama &lt;3&gt;</title>"));
  CHECK(data_of(page)["rows"][0]["values"][column_of("variant")] == evil.variant);
  CHECK(data_of(page)["rows"][0]["values"][column_of("reason")] == evil.reason);
}

TEST_CASE("html: the policy lets in the page's own style and scripts, by their hashes, and nothing else") {
  const std::string page = reports::html_page(records_of({passed("naive")}));
  const auto source = [](std::string_view text) {
    // Base64 of the 32 bytes: 6 bits a character, the last padded.
    constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bits, base64;
    for (char digit : sha256_hex(text)) {
      const int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
      for (int bit = 3; bit >= 0; --bit) bits += static_cast<char>('0' + (value >> bit & 1));
    }
    bits += "00";
    for (std::size_t at = 0; at < bits.size(); at += 6) base64 += alphabet[std::stoul(bits.substr(at, 6), nullptr, 2)];
    return "'sha256-" + base64 + "='";
  };
  const reports::WebAssets& assets = reports::web_assets();
  std::string scripts = source(assets.script);
  if (!assets.echarts.empty()) scripts += " " + source(assets.echarts);
  CHECK_THAT(page,
             ContainsSubstring("content=\"default-src 'none'; script-src " + scripts + "; style-src " +
                               source(assets.style) + "; img-src data: blob:; base-uri 'none'; form-action 'none'\""));
}

TEST_CASE("html: the page has every figure of the records") {
  const Records records = records_of({passed("naive"), passed("fused")});
  const Json data = data_of(reports::html_page(records));
  CHECK(data["header"] == records.header);
  REQUIRE(data["rows"].size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    for (const reports::Column& column : reports::columns()) {
      CAPTURE(std::string(column.name));
      CHECK(data["columns"][column_of(column.name)][0] == column.name);
      CHECK(data["rows"][i]["values"][column_of(column.name)] == records.rows[i].at(std::string(column.name)));
    }
    const Json more = Json::parse(data["rows"][i]["more"].get<std::string>());
    CHECK(more[0].size() == records.rows[i]["samples_us"].size());
    const Json& steps = records.rows[i].at("steps");
    REQUIRE(more[2].size() == steps.size());
    CHECK(more[2][1][0] == steps[1]["name"]);
    CHECK(more[2][1].size() == reports::step_columns().size() + 2);
    REQUIRE(more[3].size() == 1);
    CHECK(data["tensor_keys"][3] == "dims");
    CHECK(more[3][0][3] == records.rows[i]["tensors"][0]["dims"]);
  }
}

TEST_CASE("html: samples are rounded to what a clock can tell, and what is not known stays null") {
  const Records records = parse(
      "{\"schema\": 1}\n"
      "{\"case_id\": \"a\", \"samples_us\": [18.384000286459923, null, 20], \"samples_mhz\": [1970.3, null, \"x\"]}\n");
  const Json more = Json::parse(data_of(reports::html_page(records))["rows"][0]["more"].get<std::string>());
  CHECK(more[0] == Json({18.384, nullptr, 20}));
  CHECK(more[1] == Json({1970, nullptr, nullptr}));
  CHECK(more[2] == Json::array());
}

TEST_CASE("html: runs that are empty, cut off or without a header still make a page") {
  for (const std::string& text :
       {std::string(), std::string("{\"sche"), lines_of({}), std::string("{\"case_id\": 7, \"steps\": 3}\n")}) {
    const std::string page = reports::html_page(parse(text));
    CHECK(page.starts_with("<!DOCTYPE html>"));
    CHECK(page.ends_with("</html>\n"));
    CHECK(data_of(page)["rows"].is_array());
  }
  const std::string text = lines_of({passed("naive"), passed("fused")});
  const Json warnings = data_of(reports::html_page(parse(text.substr(0, text.size() - 9))))["warnings"];
  CHECK_THAT(warnings.at(0).get<std::string>(), ContainsSubstring("line 3 is cut off"));
}

TEST_CASE("html: without scripts the summary stands in the page") {
  const std::string page = reports::html_page(records_of({passed("naive"), failed("<wrong>")}));
  const std::string fallback = page.substr(page.find("<noscript>"), page.find("</noscript>") - page.find("<noscript>"));
  CHECK_THAT(fallback, ContainsSubstring("2 rows: 1 pass, 1 fail"));
  CHECK_THAT(fallback, ContainsSubstring("&lt;wrong&gt;"));
}

TEST_CASE("html and summary: on the CPU the baseline is eigen") {
  Row row = passed("fused");
  row.backend = Backend::cpu;
  CHECK(data_of(reports::html_page(records_of({row})))["baseline"] == "eigen");
  CHECK(reports::summary(records_of({row}), {}).find("vs eigen") != std::string::npos);
  CHECK(reports::summary(records_of({passed("fused")}), {}).find("vs cublas") != std::string::npos);
}

TEST_CASE("summary: a table, counts and where the report is") {
  const Records records = records_of({passed("naive"), passed("cublas"), passed("fused"), failed("wrong")});
  const std::string text = reports::summary(records, {.report_path = "out/x/report.html"});
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(longest_line(text) <= 120);
  CHECK_THAT(
      text, ContainsSubstring("block/bf16/d4096-f14336-h32-kv8/b2-s2048-p0/causal-half/balanced-42 (cold, sustained)"));
  CHECK_THAT(text, ContainsSubstring("1.25x [1.21, 1.29]"));
  CHECK_THAT(text, ContainsSubstring("600.0"));
  CHECK_THAT(text, ContainsSubstring("40%"));
  CHECK_THAT(text, ContainsSubstring("\n      wrong\n"));
  CHECK_THAT(text, ContainsSubstring("4 rows: 3 pass, 1 fail\n"));
  CHECK_THAT(text, ContainsSubstring("report: out/x/report.html\n"));
}

TEST_CASE("summary: colour on a terminal alone, and no record can steer it") {
  const Records records = records_of({failed("\x1b[2Jgone\r\nrow")});
  const std::string plain = reports::summary(records, {});
  CHECK(plain.find('\x1b') == std::string::npos);
  CHECK(plain.find('\r') == std::string::npos);
  const std::string coloured = reports::summary(records, {.colour = true});
  CHECK(coloured.find("\x1b[31mfail") != std::string::npos);
  CHECK(coloured.find("\x1b[2J") == std::string::npos);
}

TEST_CASE("summary: long reasons are wrapped to the terminal, and nothing is cut") {
  std::string reason;
  for (int i = 0; i < 60; ++i) reason += "word" + std::to_string(i) + " ";
  const std::string text = reports::summary(records_of({failed(reason)}), {.width = 100});
  CHECK(longest_line(text) <= 120);
  for (int i = 0; i < 60; ++i) CHECK_THAT(text, ContainsSubstring("word" + std::to_string(i)));
}

TEST_CASE("summary: no rows, and a file that was cut off") {
  CHECK_THAT(reports::summary(parse(""), {}), ContainsSubstring("0 rows\n"));
  const std::string text = lines_of({passed("naive"), passed("fused")});
  CHECK_THAT(reports::summary(parse(text.substr(0, text.size() - 9)), {}),
             ContainsSubstring("results.jsonl: line 3 is cut off"));
}

TEST_CASE("summary and html show the header's warnings") {
  const Records records = parse("{\"schema\": 1, \"warnings\": [\"the GPU is <busy>\", 7], \"stages_s\": {}}\n" +
                                reports::to_line(to_json(passed("naive"))));
  CHECK_THAT(reports::summary(records, {}), ContainsSubstring("warning: the GPU is <busy>\n"));
  CHECK(data_of(reports::html_page(records))["warnings"] == Json({"the GPU is <busy>"}));
  CHECK(reports::summary(records_of({passed("naive")}), {}).find("warning") == std::string::npos);
}

TEST_CASE("summary, html and markdown say that a run has no end") {
  Records records = records_of({passed("naive")});
  records.header.erase("stages_s");  // written when all cases are done
  const std::string said = "the run was cut off or still goes on: rows may be missing";
  CHECK_THAT(reports::summary(records, {}), ContainsSubstring("warning: " + said));
  CHECK(data_of(reports::html_page(records))["warnings"] == Json({said}));
  CHECK_THAT(reports::run_markdown(records), ContainsSubstring("- **warning**: <code>" + said + "</code>\n"));
}

TEST_CASE("markdown: the run in a line, then its rows with every figure that a reviewer asks for") {
  Row counted = passed("fused");
  counted.dram_read_bytes = std::int64_t{300'000'000};
  counted.dram_write_bytes = std::int64_t{50'000'000};
  const Records records = records_of({passed("naive"), passed("cublas"), counted});
  const std::string text = reports::run_markdown(records);
  CHECK(text.starts_with("### fusebench llama &#60;3&#62;: 3 rows: 3 pass\n"));
  CHECK_THAT(text, ContainsSubstring("- device: <code>H200</code>\n"));
  CHECK_THAT(text, ContainsSubstring("- command: <code>fusebench run a.yaml</code>\n"));
  CHECK_THAT(text, ContainsSubstring("| speed-up over naive | speed-up over cublas |"));
  CHECK_THAT(text, ContainsSubstring("balanced-42 (cold, sustained)</code> | <code>naive</code> | pass | 12346 |"));
  CHECK_THAT(text, ContainsSubstring("|  | <code>cublas</code> | pass | 1235 |"));  // the case is named once
  CHECK_THAT(text, ContainsSubstring("| 10.5x [10.2, 10.8] | 1.25x [1.21, 1.29] | 350.0 | - | 40% |"));
  CHECK_THAT(text, ContainsSubstring("| 600.0 modelled |"));
  CHECK(text.find("did not pass") == std::string::npos);
  CHECK(text.find("<details>") == std::string::npos);
}

TEST_CASE("markdown: failures come first, with their reasons") {
  const std::string text = reports::run_markdown(records_of({passed("naive"), failed("rel_l2 over its budget")}));
  const std::size_t failures = text.find("**1 row did not pass**");
  REQUIRE(failures != std::string::npos);
  CHECK(failures < text.find("<code>naive"));
  CHECK_THAT(text, ContainsSubstring("<code>rel_l2 over its budget</code>"));
  CHECK_THAT(text, ContainsSubstring("| **fail** |"));
  CHECK_THAT(text, ContainsSubstring(">999%"));
}

TEST_CASE("markdown: a long run is folded by op, and ends before a comment is full") {
  std::vector<Row> rows;
  for (int i = 0; i < 30; ++i) {
    for (const char* variant : {"naive", "cublas", "fused"}) {
      rows.push_back(passed(variant, i % 2 == 0 ? Op::block : Op::mlp));
      rows.back().c.seed = static_cast<std::uint64_t>(i);
    }
  }
  const std::string text = reports::run_markdown(records_of(rows));
  CHECK(count(text, "<details>") == 2);
  CHECK(count(text, "</details>") == 2);
  CHECK_THAT(text, ContainsSubstring("<summary><code>block</code>: 45 rows, <code>fused</code> 1.25x over cublas<"));
  CHECK(text.find("left out") == std::string::npos);

  for (int i = 0; i < 1000; ++i) {
    rows.push_back(failed(std::string(1000, '|')));
    rows.back().c.seed = 100 + static_cast<std::uint64_t>(i);
  }
  const std::string cut = reports::run_markdown(records_of(rows));
  CHECK(cut.size() < 65536);
  CHECK_THAT(cut, ContainsSubstring("more are not listed"));
  CHECK_THAT(cut, ContainsSubstring("left out, since a comment holds no more"));
}

TEST_CASE("markdown: names and reasons cannot break the table nor become markup") {
  const std::string hostile =
      "a|b`c`\"d\"\\ <img src=x> **e** [f](g) @someone #1 </details>\n\r\x1b[2J $h ~i~ \xe2\x82\xac https://x.y";
  Row row = failed(hostile);
  row.variant = hostile;
  row.repro = hostile;
  Json head = header();
  head["name"] = hostile;
  head["command"] = hostile;
  head["device"]["name"] = hostile;
  head["warnings"] = {hostile};
  const std::string text = reports::run_markdown(parse(reports::to_line(head) + reports::to_line(to_json(row))));
  for (const char* bad : {"\x1b", "`", "<img", "](", "@", "</details>", "**e**", "https://"}) {
    CAPTURE(bad);
    CHECK(text.find(bad) == std::string::npos);
  }
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("|")) continue;
    CAPTURE(line);
    const auto bars = std::count(line.begin(), line.end(), '|');
    CHECK((bars == 5 || bars == 10));
  }
}

TEST_CASE("markdown: no rows, no header, and a file that was cut off") {
  CHECK_THAT(reports::run_markdown(parse("")), ContainsSubstring("### fusebench: 0 rows\n"));
  CHECK_THAT(reports::run_markdown(parse("{\"case_id\": 7}\n")), ContainsSubstring("device: <code>not known</code>"));
  CHECK_THAT(reports::run_markdown(parse("{\"case_id\": 7}\n")), ContainsSubstring("**none**"));
  const std::string text = lines_of({passed("naive"), passed("fused")});
  CHECK_THAT(reports::run_markdown(parse(text.substr(0, text.size() - 9))), ContainsSubstring("**warning**: <code>"));
}

TEST_CASE("markdown: whatever the records hold, it fits into a comment") {
  Row endless = failed(std::string(1'000'000, 'x'));
  endless.repro = std::string(1'000'000, '<');
  Records records = records_of(std::vector<Row>(100, endless));
  for (int i = 0; i < 400; ++i) records.header["warnings"].push_back(std::string(300, '*'));
  const std::string text = reports::run_markdown(records);
  CHECK(text.size() < 65536);
  CHECK_THAT(text, ContainsSubstring("390 more warnings"));
}

TEST_CASE("reports are rebuilt from the records, and replace what was there") {
  const TempFolder folder;
  folder.write("results.jsonl", lines_of({passed("naive"), failed("wrong")}));
  folder.write("results.csv", "old");
  const Records records = reports::write_reports(folder.path());
  CHECK(records.rows.size() == 2);
  CHECK(read_file(folder / "results.csv") == reports::results_csv(records));
  CHECK(read_file(folder / "steps.csv") == reports::steps_csv(records));
  CHECK(read_file(folder / "report.html") == reports::html_page(records));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  CHECK(files == 4);  // nothing temporary is left
}

TEST_CASE("reports: a missing file is named, and a file that cannot be replaced leaves nothing half-written") {
  const TempFolder folder;
  CHECK_THROWS_WITH(reports::write_reports(folder.path()), ContainsSubstring("results.jsonl"));
  folder.write("results.jsonl", "");
  CHECK_THROWS_WITH(reports::write_reports(folder.path()), ContainsSubstring("holds no record"));
  std::filesystem::remove(folder / "results.jsonl");
  std::filesystem::create_directories(folder / "x.csv" / "occupied");
  CHECK_THROWS_WITH(reports::write_atomically(folder / "x.csv", "data"), ContainsSubstring("x.csv"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  CHECK_THROWS_AS(reports::write_atomically("/nonexistent/y.csv", "data"), std::runtime_error);
}
