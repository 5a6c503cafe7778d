// Elementary functions of vectors.

#pragma once

#include <type_traits>

#include "vectors.h"

// e^x, within two units of the last place: 2^n e^r with a whole n and |r| <= log(2)/2, and Taylor's series of e^r.
// 0 below the logarithm of the smallest number, infinite above that of the largest, NaN for NaN.
template <typename T>
inline Vector<T> exponential(Vector<T> x) {
  constexpr bool SINGLE = sizeof(T) == 4;
  using Whole = std::conditional_t<SINGLE, int32_t, int64_t>;
  constexpr int DIGITS = SINGLE ? 23 : 52, TERMS = SINGLE ? 7 : 13;
  constexpr Whole BIAS = SINGLE ? 127 : 1023;
  constexpr T ROUND = T(int64_t(3) << (DIGITS - 1));  // what is added to it loses its fraction
  constexpr T HIGH = SINGLE ? 0x1.62ep-1 : 0x1.62e42feep-1;
  constexpr T LOW = SINGLE ? 0x1.0bfbe8e7bcd5ep-15 : 0x1.a39ef35793c76p-33;  // log(2) - HIGH
  constexpr T LEAST = SINGLE ? -87.33654 : -708.396418532264, MOST = SINGLE ? 88.37626 : 709.436139303104;
  const auto below = x < LEAST, above = x > MOST;
  const Vector<T> inside = below ? Vector<T>{} : above ? Vector<T>{} : x;
  const Vector<T> shifted = inside * T(1.4426950408889634) + ROUND, n = shifted - ROUND;
  const Vector<T> r = (inside - n * HIGH) - n * LOW;
  Vector<T> sum = {};
  T factor[TERMS + 1] = {1};
  UNROLL for (int k = 1; k <= TERMS; ++k) factor[k] = factor[k - 1] / k;
  UNROLL for (int k = TERMS; k >= 0; --k) sum = sum * r + factor[k];
  Vector<Whole> bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + BIAS) << DIGITS;
  Vector<T> power;
  std::memcpy(&power, &bits, sizeof power);
  const Vector<T> zero = {};
  return below ? zero : above ? zero + T(__builtin_inf()) : sum * power;
}
