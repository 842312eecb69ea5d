// Vectors of eight floats. Include only in files that are compiled for AVX2 and FMA (*_avx2.cpp).
#pragma once

#include <cstdint>
#include <cstring>

namespace unidle::workloads {

// Functions are static, so that each file keeps its own copy: the linker must not keep AVX2 code for all files.
using Lanes = float __attribute__((vector_size(32)));
using Bits = std::int32_t __attribute__((vector_size(32)));

static inline Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}
static inline void store(float* to, Lanes lanes) { std::memcpy(to, &lanes, sizeof(lanes)); }
static inline Lanes splat(float value) { return Lanes{} + value; }
static inline float sum(Lanes v) { return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7])); }

/// exp for arguments <= 0: 2^n times a polynomial (Cephes expf), relative error about 1e-7.
static inline Lanes exp_negative(Lanes x) {
  constexpr float kLowest = -87.0F;
  x = x < kLowest ? splat(kLowest) : x;
  const Lanes scaled = x * 1.44269504088896341F;
  // Truncates towards 0, which rounds negative values to nearest.
  const Bits n = __builtin_convertvector(scaled - 0.5F, Bits);
  const Lanes whole = __builtin_convertvector(n, Lanes);
  const Lanes r = x - whole * 0.693359375F + whole * 2.12194440e-4F;
  Lanes p = splat(1.9875691500e-4F);
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const Bits power = (n + 127) << 23;
  Lanes two_to_n;
  std::memcpy(&two_to_n, &power, sizeof(two_to_n));
  return p * two_to_n;
}

}  // namespace unidle::workloads
