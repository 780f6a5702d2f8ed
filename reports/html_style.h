// The page's style sheet, and its hash for the content security policy: with it no other style, and no script, runs.
#pragma once

#include <string_view>

namespace fusebench::reports {

inline constexpr std::string_view kHtmlStyle = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #57606a; --line: #d0d7de; --head: #f3f5f7;
  --good: #116329; --bad: #a40e26; --warn: #7d4e00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --paper: #0d1117; --soft: #9198a1; --line: #30363d; --head: #161b22;
    --good: #56d364; --bad: #ff7b72; --warn: #e3b341; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem 1.5rem 3rem; max-width: 110rem; color: var(--ink); background: var(--paper);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p { margin: .4rem 0; max-width: 60rem; }
.soft { color: var(--soft); }
.scroll { overflow: auto; max-height: 80vh; border: 1px solid var(--line); border-radius: 4px; width: fit-content;
  max-width: 100%; }
table { border-collapse: separate; border-spacing: 0; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
tr:last-child > * { border-bottom: 0; }
thead th { background: var(--head); position: sticky; top: 0; white-space: nowrap; }
thead.two th { position: static; }
tbody th { font-weight: 500; }
.n { text-align: right; white-space: nowrap; }
.first { border-left: 1px solid var(--line); }
.id { min-width: 12rem; overflow-wrap: break-word; }
.mode { display: block; color: var(--soft); font-weight: 400; }
.text { min-width: 8rem; max-width: 40rem; overflow-wrap: anywhere; }
.wide td, .wide th { white-space: nowrap; }
code { font: .92em ui-monospace, monospace; overflow-wrap: anywhere; }
.pass { color: var(--good); }
.unsupported { color: var(--warn); }
.fail { color: var(--bad); font-weight: 600; }
details { margin: .3rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
details .scroll { margin: .3rem 0 .8rem 1.2rem; }
.print { display: none; }
@media print {
  @page { size: landscape; margin: 12mm; }
  :root { --ink: #000; --paper: #fff; --soft: #444; --line: #999; --head: #eee; --good: #000; --bad: #000; --warn: #000; }
  body { padding: 0; max-width: none; font-size: 9pt; }
  .scroll { overflow: visible; max-height: none; width: auto; border: 0; }
  table { font-size: 8pt; }
  th, td { padding: .1rem .35rem; }
  .id { min-width: 0; }
  tr { break-inside: avoid; }
  thead th { position: static; }
  .screen { display: none; }
  .print { display: block; }
}
)css";

inline constexpr std::string_view kHtmlStyleSha256 = "xjCgedYYQ8waOtNSEF4lN3Q4xLhrQO3IGHNuYyMpgI0=";

}  // namespace fusebench::reports
