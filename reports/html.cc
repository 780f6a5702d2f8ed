#include "reports/html.h"

#include <fmt/format.h>

#include <string>

#include "reports/columns.h"
#include "reports/format.h"
#include "reports/page_data.h"
#include "reports/sha256.h"
#include "reports/summary.h"
#include "reports/web_assets.h"

namespace fusebench::reports {

namespace {

// As a content security policy names a script or a style: base64 of its SHA-256.
std::string source_of(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string hex = sha256_hex(text);
  std::string base64;
  unsigned bits = 0;
  int count = 0;
  for (const char digit : hex) {
    bits = bits << 4U | static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    count += 4;
    if (count < 6) continue;
    count -= 6;
    base64 += digits[bits >> count & 63U];
  }
  base64 += digits[bits << (6 - count) & 63U];  // 256 bits leave 4, and one digit is missing to a multiple of 4
  return "'sha256-" + base64 + "='";
}

std::string policy(const WebAssets& assets) {
  std::string scripts = source_of(assets.script);
  if (!assets.echarts.empty()) scripts += " " + source_of(assets.echarts);
  // data: and blob: are for saving a chart as an image.
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; img-src data: blob:; base-uri 'none'; form-action 'none'",
      scripts, source_of(assets.style));
}

std::string script(std::string_view text) { return fmt::format("<script>{}</script>\n", text); }

// For browsers that run no scripts, and for those who look at the source.
std::string without_scripts(const Records& records) {
  return fmt::format(
      "<noscript>\n<p>This page is drawn by a script. What it would say first:</p>\n<pre>{}</pre>\n</noscript>\n",
      escaped(summary(records, {})));
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default: {
        const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
        out += control && c != '\n' && c != '\t' ? std::string("\uFFFD") : std::string(1, c);
      }
    }
  }
  return out;
}

std::string html_page(const Records& records) {
  const WebAssets& assets = web_assets();
  const std::string title = page_title(records);
  return fmt::format(
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<div id=\"page\"></div>\n",
             policy(assets), escaped(title), assets.style) +
         without_scripts(records) +
         fmt::format("<script type=\"application/json\" id=\"records\">{}</script>\n", page_data(records)) +
         (assets.echarts.empty() ? std::string() : script(assets.echarts)) + script(assets.script) +
         "</body>\n</html>\n";
}

}  // namespace fusebench::reports
