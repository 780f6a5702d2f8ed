#include "reports/markdown_text.h"

#include <fmt/format.h>

#include <cctype>
#include <string_view>

#include "reports/format.h"

namespace fusebench::reports {

namespace {

bool alphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Punctuation that begins no markup; a colon does in front of a slash, an underscore at the edge of a word.
bool plain(const std::string& text, std::size_t i) {
  const char next = i + 1 < text.size() ? text[i + 1] : ' ';
  if (text[i] == ':') return next != '/';
  if (text[i] == '_') return i > 0 && alphanumeric(text[i - 1]) && alphanumeric(next);
  const bool ascii = static_cast<unsigned char>(text[i]) < 0x80;
  return !ascii || alphanumeric(text[i]) || std::string_view(" -./,()%;").find(text[i]) != std::string_view::npos;
}

}  // namespace

std::string inert(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (plain(text, i)) {
      out += text[i];
    } else {
      out += c < 0x20 || c == 0x7f ? std::string(" ") : fmt::format("&#{};", static_cast<int>(c));
    }
  }
  return out;
}

std::string code(const std::string& text) {
  const std::string shown(first_bytes(text, kLongest));
  return "<code>" + inert(shown) + (shown.size() < text.size() ? "..." : "") + "</code>";
}

}  // namespace fusebench::reports
