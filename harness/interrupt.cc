#include "harness/interrupt.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "harness/shell.h"

namespace fusebench {

namespace {

std::string text;  // made before, since a handler may not allocate

void say_and_end(int signal) {
  static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

InterruptHint::InterruptHint(const std::filesystem::path& folder) {
  text =
      fmt::format("\ninterrupted: rows that had ended are in {}; `fusebench report {}` makes CSV and a page of them\n",
                  (folder / "results.jsonl").string(), shell_quoted(folder.string()));
  for (const int signal : {SIGINT, SIGTERM}) {
    if (std::signal(signal, say_and_end) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

InterruptHint::~InterruptHint() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
}

}  // namespace fusebench
