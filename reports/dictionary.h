// docs/records.md: the records' data dictionary, from the same table that the records are written by.
#pragma once

#include <string>

namespace fusebench::reports {

std::string data_dictionary();

}  // namespace fusebench::reports
