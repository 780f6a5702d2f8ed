#include "harness/tensor.h"

#include <bit>
#include <cstring>

namespace fusebench {
namespace {

constexpr int kDoubleMantissaBits = 52;
constexpr int kDoubleBias = 1023;

/// A 16-bit IEEE format: one sign bit, the exponent, then `kMantissaBits`.
template <int kMantissaBits>
struct Narrow {
  static constexpr int kExponentBits = 15 - kMantissaBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kDropped = kDoubleMantissaBits - kMantissaBits;
  static constexpr std::uint16_t kInfinity = static_cast<std::uint16_t>(((1 << kExponentBits) - 1) << kMantissaBits);
  static constexpr std::uint16_t kNaN = kInfinity | (1 << (kMantissaBits - 1));

  static constexpr std::uint64_t power_of_two(int exponent) {
    return static_cast<std::uint64_t>(exponent + kDoubleBias) << kDoubleMantissaBits;
  }

  static std::uint16_t round(double value) {
    constexpr std::uint64_t kSmallestNormal = power_of_two(1 - kBias);
    // halfway between the largest finite value and the power of two after it: ties go to the even one, infinity
    constexpr std::uint64_t kOverflow =
        power_of_two(kBias) | (((std::uint64_t{1} << (kMantissaBits + 1)) - 1) << (kDropped - 1));
    constexpr std::uint64_t kDoubleInfinity = power_of_two(kDoubleBias + 1);

    const auto bits = std::bit_cast<std::uint64_t>(value);
    const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000);
    const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
    if (magnitude >= kSmallestNormal && magnitude < kOverflow) [[likely]] {
      const std::uint64_t rebased =
          magnitude - (static_cast<std::uint64_t>(kDoubleBias - kBias) << kDoubleMantissaBits);
      const std::uint64_t half_or_less = (std::uint64_t{1} << (kDropped - 1)) - 1;
      return sign | static_cast<std::uint16_t>((rebased + half_or_less + (rebased >> kDropped & 1)) >> kDropped);
    }
    if (magnitude > kDoubleInfinity) return sign | kNaN;
    if (magnitude >= kOverflow) return sign | kInfinity;
    // Subnormal: in this sum the last place of the double is that of the narrow format's subnormals.
    constexpr std::uint64_t kAligner = power_of_two(kDoubleMantissaBits + 1 - kBias - kMantissaBits);
    const double aligned = std::bit_cast<double>(magnitude) + std::bit_cast<double>(kAligner);
    return sign | static_cast<std::uint16_t>(std::bit_cast<std::uint64_t>(aligned) - kAligner);
  }
};

using Fp16 = Narrow<10>;
using Bf16 = Narrow<7>;

template <class Bits, class Convert>
void store_as(std::span<const double> values, std::byte* out, Convert convert) {
  for (const double value : values) {
    const Bits bits = convert(value);
    std::memcpy(out, &bits, sizeof bits);
    out += sizeof bits;
  }
}

template <class Bits, class Convert>
void load_as(const std::byte* in, std::int64_t count, double* out, Convert convert) {
  for (std::int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, in + i * static_cast<std::int64_t>(sizeof bits), sizeof bits);
    out[i] = convert(bits);
  }
}

}  // namespace

HostTensor::HostTensor(DType dtype, std::int64_t rows, std::int64_t cols)
    : dtype(dtype), rows(rows), cols(cols), data(static_cast<std::size_t>(rows * cols * bytes_of(dtype))) {}

void HostTensor::read_rows(std::int64_t first, std::int64_t count, double* out) const {
  load(dtype, data.data() + first * cols * bytes_of(dtype), count * cols, out);
}

std::uint16_t to_fp16(double value) { return Fp16::round(value); }

std::uint16_t to_bf16(double value) { return Bf16::round(value); }

double from_fp16(std::uint16_t bits) {
  constexpr double kLastPlaceOfSubnormals = 0x1p-24;
  const std::uint64_t sign = static_cast<std::uint64_t>(bits & 0x8000) << 48;
  const std::uint64_t magnitude = bits & 0x7fff;
  std::uint64_t widened = 0;
  if (magnitude < 0x0400) {
    widened = std::bit_cast<std::uint64_t>(static_cast<double>(magnitude) * kLastPlaceOfSubnormals);
  } else if (magnitude >= Fp16::kInfinity) {
    widened = Fp16::power_of_two(kDoubleBias + 1) | (magnitude & 0x03ff) << Fp16::kDropped;
  } else {
    const std::uint64_t rebase = static_cast<std::uint64_t>(kDoubleBias - Fp16::kBias) << kDoubleMantissaBits;
    widened = (magnitude << Fp16::kDropped) + rebase;
  }
  return std::bit_cast<double>(sign | widened);
}

double from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::fp16:
      return from_fp16(to_fp16(value));
    case DType::bf16:
      return from_bf16(to_bf16(value));
    case DType::fp32:
      break;
  }
  return static_cast<float>(value);
}

void store(DType dtype, std::span<const double> values, std::byte* out) {
  switch (dtype) {
    case DType::fp16:
      return store_as<std::uint16_t>(values, out, to_fp16);
    case DType::bf16:
      return store_as<std::uint16_t>(values, out, to_bf16);
    case DType::fp32:
      return store_as<float>(values, out, [](double value) { return static_cast<float>(value); });
  }
}

void load(DType dtype, const std::byte* bits, std::int64_t count, double* out) {
  switch (dtype) {
    case DType::fp16:
      return load_as<std::uint16_t>(bits, count, out, from_fp16);
    case DType::bf16:
      return load_as<std::uint16_t>(bits, count, out, from_bf16);
    case DType::fp32:
      return load_as<float>(bits, count, out, [](float value) { return static_cast<double>(value); });
  }
}

InputSet read_inputs(const OpSpec& spec, const TensorSource& source) {
  InputSet inputs;
  for (const TensorSpec& tensor : spec.tensors) {
    if (tensor.role != Role::output) inputs.emplace(tensor.name, source.read(tensor));
  }
  return inputs;
}

}  // namespace fusebench
