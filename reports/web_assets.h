// The page's style and scripts, from reports/web, as they were when fusebench was built.
#pragma once

#include <string_view>

namespace fusebench::reports {

struct WebAssets {
  std::string_view style;
  std::string_view script;
  std::string_view echarts;  ///< empty where the build had no ECharts
};
const WebAssets& web_assets();

}  // namespace fusebench::reports
