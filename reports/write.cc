#include "reports/write.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "reports/csv.h"
#include "reports/html.h"

namespace fusebench::reports {

void write_atomically(const std::filesystem::path& file, std::string_view content) {
  // The process id keeps two reports of one folder from writing the same file.
  std::filesystem::path beside = file;
  beside += fmt::format(".{}.tmp", ::getpid());
  std::error_code error;
  {
    std::ofstream out(beside, std::ios::binary | std::ios::trunc);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.close();
    if (!out) error = std::error_code(errno, std::generic_category());
  }
  if (!error) std::filesystem::rename(beside, file, error);
  if (!error) return;
  std::error_code ignored;
  std::filesystem::remove(beside, ignored);
  throw std::runtime_error(fmt::format("cannot write {}: {}; is its folder there and writable, and the disk not full?",
                                       file.string(), error.message()));
}

Records write_reports(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "results.jsonl";
  Records records = read_records(file);
  if (records.header.is_null() && records.rows.empty()) {
    throw std::runtime_error(fmt::format("{} holds no record: its run ended before it wrote one", file.string()));
  }
  write_atomically(folder / "results.csv", results_csv(records));
  write_atomically(folder / "steps.csv", steps_csv(records));
  write_atomically(folder / "report.html", html_page(records));
  return records;
}

void remove_reports(const std::filesystem::path& folder) {
  for (const char* name : {"results.csv", "steps.csv", "report.html"}) std::filesystem::remove(folder / name);
}

}  // namespace fusebench::reports
