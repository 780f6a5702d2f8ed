#include "harness/dump.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/npy.h"

namespace fusebench {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& root, const Case& c) {
  std::string name = case_id(c);
  std::replace(name.begin(), name.end(), '/', '_');
  return root / name;
}

// fp16, bf16 and fp32 are all exact in fp32.
void write_tensor(const std::filesystem::path& path, const HostTensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.size()));
  std::vector<double> row(static_cast<std::size_t>(tensor.cols));
  for (std::int64_t r = 0; r < tensor.rows; ++r) {
    tensor.read_rows(r, 1, row.data());
    std::transform(row.begin(), row.end(), values.begin() + r * tensor.cols,
                   [](double value) { return static_cast<float>(value); });
  }
  write_npy(path, std::array{tensor.rows, tensor.cols}, values);
}

void write_case(const std::filesystem::path& path, const Case& c) {
  std::ofstream file(path);
  file << nlohmann::ordered_json{{"case_id", case_id(c)},
                                 {"op", name_of(c.op)},
                                 {"dtype", name_of(c.dtype)},
                                 {"dim", c.dim},
                                 {"hidden", c.hidden},
                                 {"heads", c.heads},
                                 {"kv_heads", c.kv_heads},
                                 {"batch", c.batch},
                                 {"seq", c.seq},
                                 {"past", c.past},
                                 {"causal", c.causal},
                                 {"rope", name_of(c.rope)},
                                 {"rope_theta", c.rope_theta},
                                 {"eps", c.eps}}
              .dump(2)
       << '\n';
  if (!file) throw std::runtime_error(path.string() + ": cannot be written");
}

}  // namespace

void dump_case(const std::filesystem::path& root, const Case& c, const OpSpec& spec, const InputSet& inputs,
               const Expected& expected) {
  const std::filesystem::path folder = folder_of(root, c);
  std::filesystem::create_directories(folder);
  write_case(folder / "case.json", c);
  for (const TensorSpec& tensor : spec.tensors) {
    const auto input = inputs.find(tensor.name);
    if (input != inputs.end()) write_tensor(folder / ("input." + tensor.name + ".npy"), input->second);
  }
  const auto rows = static_cast<std::int64_t>(expected.rows.size());
  write_npy(folder / "rows.npy", std::array{rows}, expected.rows);
  for (const ExpectedTensor& tensor : expected.tensors) {
    write_npy(folder / ("expected." + tensor.name + ".npy"), std::array{rows, tensor.cols}, tensor.expected);
  }
}

void dump_outputs(const std::filesystem::path& root, const Case& c, const std::string& variant,
                  const std::vector<Output>& outputs) {
  const std::filesystem::path folder = folder_of(root, c) / variant;
  std::filesystem::create_directories(folder);
  for (const Output& output : outputs) write_tensor(folder / ("output." + output.name + ".npy"), output.tensor);
}

}  // namespace fusebench
