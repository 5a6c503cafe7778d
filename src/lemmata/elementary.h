// Elementary functions of several numbers at a time.

#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#include "vectors.h"

// How numbers of a kind are made of bits, and where their exponential leaves them.
template <typename T>
struct Format;
template <>
struct Format<float> {
  using Bits = int32_t;
  static constexpr int MANTISSA = 23, TERMS = 7;
  static constexpr float LOWEST = -87.0f, HIGHEST = 88.72f, LN2 = 0.693145752f, REST = 1.42860677e-6f;
};
template <>
struct Format<double> {
  using Bits = int64_t;
  static constexpr int MANTISSA = 52, TERMS = 13;
  static constexpr double LOWEST = -708.0, HIGHEST = 709.78, LN2 = 0.693147180369123816490, REST = 1.90821492927058770002e-10;
};

// e^x to rounding, with 0 below the smallest normal number, infinity above the largest, and NaN for NaN: x = n log 2 + r with
// |r| <= log(2)/2 (log 2 in two pieces, the first so short that its multiples are exact), the series of e^r, and n added to
// the exponent.
template <typename T>
inline Vector<T> exponential(Vector<T> x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  constexpr T SHIFT = T(3) * T(Bits(1) << (F::MANTISSA - 1));  // adding it rounds to whole numbers, which are its last bits
  const Vector<T> shifted = x * T(1.44269504088896340736) + SHIFT, whole = shifted - SHIFT;
  const Vector<T> r = (x - whole * F::LN2) - whole * F::REST;
  T factorial = 1;
  UNROLL for (int k = 2; k <= F::TERMS; ++k) factorial *= k;
  Vector<T> sum = Vector<T>{} + 1 / factorial;
  UNROLL for (int k = F::TERMS; k > 0; --k) {
    factorial /= k;
    sum = sum * r + 1 / factorial;
  }
  Vector<Bits> bits, power;
  std::memcpy(&bits, &sum, sizeof bits), std::memcpy(&power, &shifted, sizeof power);
  bits += power << F::MANTISSA;
  Vector<T> found;
  std::memcpy(&found, &bits, sizeof found);
  found = x < F::LOWEST ? Vector<T>{} : found;
  found = x > F::HIGHEST ? Vector<T>{} + std::numeric_limits<T>::infinity() : found;
  return x == x ? found : x;
}
