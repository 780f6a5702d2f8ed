#include "harness/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace fusebench {
namespace {

// Progress that cannot be shown must not end a run.
void show(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

std::size_t terminal_width(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 120;
}

bool wants_colour(int descriptor) { return isatty(descriptor) != 0 && std::getenv("NO_COLOR") == nullptr; }

Progress::Progress(std::size_t cases, bool terminal, bool quiet) : cases_(cases), terminal_(terminal), quiet_(quiet) {}

Progress::~Progress() {
  if (terminal_ && !quiet_) rewrite("");
}

void Progress::begin_case(const std::string& case_id) {
  case_ = case_id;
  note("planning");
}

void Progress::note(const std::string& what) {
  if (terminal_ && !quiet_) rewrite(fmt::format("[{}/{}] {}: {}{}", done_ + 1, cases_, case_, what, time_left()));
}

void Progress::end_case(const std::string& outcome) {
  ++done_;
  if (quiet_) return;
  if (terminal_) rewrite("");
  show(fmt::format("[{}/{}] {}: {}{}\n", done_, cases_, case_, outcome, terminal_ ? "" : time_left()));
}

std::string Progress::time_left() const {
  if (done_ == 0 || done_ >= cases_) return {};
  const double elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double left_s = elapsed_s / static_cast<double>(done_) * static_cast<double>(cases_ - done_);
  return left_s < 90 ? fmt::format(", about {:.0f} s left", left_s)
                     : fmt::format(", about {:.0f} min left", left_s / 60);
}

void Progress::rewrite(const std::string& line) {
  constexpr const char* kClearLine = "\r\x1b[2K";
  // A line that wraps cannot be cleared again.
  show(kClearLine + line.substr(0, terminal_width(STDERR_FILENO) - 1));
}

}  // namespace fusebench
