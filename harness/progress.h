// What the run is doing, on stderr: one line that is rewritten on a terminal, plain lines in a pipe.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace fusebench {

/// Columns of the terminal that a file descriptor leads to; 120 where it leads to none.
std::size_t terminal_width(int descriptor);

/// Whether it leads to a terminal, and NO_COLOR does not forbid colours.
bool wants_colour(int descriptor);

class Progress {
 public:
  Progress(std::size_t cases, bool terminal, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin_case(const std::string& case_id);
  void note(const std::string& what);  ///< within the case; shown on a terminal only
  void end_case(const std::string& outcome);

 private:
  std::string time_left() const;
  static void rewrite(const std::string& line);

  std::size_t cases_;
  bool terminal_;
  bool quiet_;
  std::size_t done_ = 0;
  std::string case_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace fusebench
