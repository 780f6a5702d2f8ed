# cmake -DOUTPUT=FILE -DSTYLE=FILE -DSCRIPTS=FILE|FILE... -DECHARTS=FILE -P: see WebAssets.cmake.
cmake_minimum_required(VERSION 3.25)
set(delimiter asset)

function(read_text variable)
  set(text "")
  foreach(file ${ARGN})
    file(READ ${file} part)
    if(part MATCHES "\\)${delimiter}\"" OR part MATCHES "</script")
      message(FATAL_ERROR "${file} cannot be embedded: it holds what ends a C++ string or a script element")
    endif()
    string(APPEND text "${part}\n")
  endforeach()
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

string(REPLACE "|" ";" SCRIPTS "${SCRIPTS}")
read_text(style ${STYLE})
read_text(script ${SCRIPTS})
read_text(echarts ${ECHARTS})
# Of two functions of one name the later would silently stand for both.
string(REGEX MATCHALL "\n(async )?function [A-Za-z0-9_]+" functions "${script}")
set(names "")
foreach(function ${functions})
  string(REGEX REPLACE ".*function " "" name "${function}")
  if(name IN_LIST names)
    message(FATAL_ERROR "reports/web has two functions ${name}")
  endif()
  list(APPEND names ${name})
endforeach()
# In a scope of its own, so that nothing lands on `window`.
set(script "(() => {\n\"use strict\";\n${script}})();\n")

# Arrays, since a view would count their letters while compiling, which is limited.
file(WRITE ${OUTPUT} "#include \"reports/web_assets.h\"

namespace fusebench::reports {

namespace {
constexpr char kStyle[] = R\"${delimiter}(${style})${delimiter}\";
constexpr char kScript[] = R\"${delimiter}(${script})${delimiter}\";
constexpr char kEcharts[] = R\"${delimiter}(${echarts})${delimiter}\";
}  // namespace

const WebAssets& web_assets() {
  static constexpr WebAssets assets{.style = {kStyle, sizeof kStyle - 1},
                                    .script = {kScript, sizeof kScript - 1},
                                    .echarts = {kEcharts, sizeof kEcharts - 1}};
  return assets;
}

}  // namespace fusebench::reports
")
