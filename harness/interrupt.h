// What Ctrl-C leaves of a run, said as the process ends.
#pragma once

#include <filesystem>

namespace fusebench {

/// While it lives, SIGINT and SIGTERM, where they are not ignored, say where the rows so far are, and then end the
/// process as they would have. One at a time.
class InterruptHint {
 public:
  explicit InterruptHint(const std::filesystem::path& folder);
  InterruptHint(const InterruptHint&) = delete;
  InterruptHint& operator=(const InterruptHint&) = delete;
  ~InterruptHint();
};

}  // namespace fusebench
