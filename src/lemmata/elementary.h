// Elementary functions of vectors of any width, of single or double precision.

#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "vectors.h"

// e^x to rounding: x = n log 2 + r with |r| <= (log 2) / 2, the power of two set in the exponent and e^r by its series. Below the
// smallest normal number it is 0.
template <typename T, typename V>
inline V exponential(V x) {
  using Integers = decltype(x < x);
  constexpr bool DOUBLE = sizeof(T) == 8;
  constexpr int DIGITS = std::numeric_limits<T>::digits - 1, TERMS = DOUBLE ? 13 : 7;
  constexpr T LOWEST = DOUBLE ? -708.39641853226408 : -87.336544, HIGHEST = DOUBLE ? 709.78271289338397 : 88.722839;
  // log 2 in two parts: n times the first is exact.
  constexpr T UPPER = DOUBLE ? 0x1.62e42fefap-1 : 0x1.62ep-1, LOWER = DOUBLE ? 0x1.cf79abc9e3b3ap-40 : 0x1.0bfbe8e7bcd5ep-15;
  constexpr T ROUNDING = T(3) * (int64_t(1) << (DIGITS - 1));  // added, it leaves whole numbers
  const V inside = x < LOWEST ? V{} + LOWEST : x > HIGHEST ? V{} + HIGHEST : x;
  const V shifted = inside * T(1.4426950408889634) + ROUNDING, n = shifted - ROUNDING;
  const V r = (inside - n * UPPER) - n * LOWER;
  T over = 1;  // 1 / k!
  T terms[TERMS + 1];
  UNROLL for (int k = 0; k <= TERMS; ++k) terms[k] = over, over /= k + 1;
  V series = V{} + terms[TERMS];
  UNROLL for (int k = TERMS - 1; k >= 0; --k) series = series * r + terms[k];
  const V found = (V)((Integers)series + ((Integers)shifted << DIGITS));
  return x < LOWEST ? V{} : x > HIGHEST ? V{} + std::numeric_limits<T>::infinity() : found;
}
