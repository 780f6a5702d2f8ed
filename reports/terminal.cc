#include "reports/terminal.h"

#include <fmt/format.h>

#include <algorithm>

namespace fusebench::reports {

std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return text;
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool to_the_right) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return to_the_right ? space + text : text + space;
}

std::string wrapped(const std::string& text, std::size_t width) {
  constexpr std::string_view indent = "      ";
  std::string out;
  std::string line(indent);
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (line.size() > indent.size() && width_of(line) + 1 + width_of(word) > width) {
      out += line + "\n";
      line = indent;
    }
    if (line.size() > indent.size()) line += ' ';
    line += word;
  }
  return line.size() > indent.size() ? out + line + "\n" : out;
}

std::string coloured(std::string text, std::string_view colour, bool on) {
  return on ? fmt::format("{}{}\x1b[0m", colour, text) : text;
}

}  // namespace fusebench::reports
