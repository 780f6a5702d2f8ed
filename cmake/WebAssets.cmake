# The report page's style and scripts as C++ strings. ECharts comes from npm (reports/web/package-lock.json); without it
# pages have their tables and say how to get the charts.
set(web ${PROJECT_SOURCE_DIR}/reports/web)
set(FUSEBENCH_ECHARTS ${web}/node_modules/echarts/dist/echarts.min.js)
if(NOT EXISTS ${FUSEBENCH_ECHARTS})
  set(FUSEBENCH_ECHARTS "")
  message(NOTICE "No charts in reports: ECharts is not there. `npm ci` in reports/web gets it; then configure again.")
endif()

# One script: what others use comes first.
set(web_scripts dom.js format.js lists.js words.js report.js state.js chart.js figures.js page.js compare.js)
file(GLOB web_parts CONFIGURE_DEPENDS RELATIVE ${web} ${web}/parts/*.js)
list(APPEND web_scripts ${web_parts} start.js)
list(TRANSFORM web_scripts PREPEND ${web}/)

set(web_assets ${PROJECT_BINARY_DIR}/web_assets.cc)
list(JOIN web_scripts "|" web_script_list)
add_custom_command(OUTPUT ${web_assets}
  COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${web_assets}" "-DSTYLE=${web}/page.css" "-DSCRIPTS=${web_script_list}"
          "-DECHARTS=${FUSEBENCH_ECHARTS}" -P ${PROJECT_SOURCE_DIR}/cmake/embed_web_assets.cmake
  DEPENDS ${web}/page.css ${web_scripts} ${FUSEBENCH_ECHARTS} ${PROJECT_SOURCE_DIR}/cmake/embed_web_assets.cmake
  VERBATIM)
