// Elementary functions of vectors: what the compiler makes of the standard library's goes number by number.

#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "vectors.h"

// Integers as wide as the numbers of a vector.
template <typename T>
using Integer = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// e^x to about one unit in the last place: x = n log 2 + r, |r| <= log(2) / 2, and the series of e^r. What would be smaller than
// the least normal number is 0, what would be larger than the largest is close to that.
template <typename T>
inline Vector<T> exp_of(Vector<T> x) {
  constexpr bool SINGLE = sizeof(T) == 4;
  constexpr int DIGITS = SINGLE ? 23 : 52, TERMS = SINGLE ? 7 : 13;
  constexpr T LEAST = SINGLE ? T(-87.33) : T(-708.39), MOST = SINGLE ? T(88.37) : T(709.43);
  constexpr T UPPER = SINGLE ? T(0.693359375) : T(6.93147180369123816490e-01);  // log 2 in two parts, the first with few digits
  constexpr T LOWER = SINGLE ? T(-2.12194440e-4) : T(1.90821492927058770002e-10);
  constexpr T ROUNDED = T(3) * T(int64_t(1) << (DIGITS - 1));  // what is added to it is rounded to a whole number
  const Vector<T> held = x < LEAST ? Vector<T>{} + LEAST : (x > MOST ? Vector<T>{} + MOST : x);
  const Vector<T> shifted = held * T(1.44269504088896340736) + ROUNDED, n = shifted - ROUNDED;
  const Vector<T> r = (held - n * UPPER) - n * LOWER;
  constexpr double FACTORIAL[] = {1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800, 39916800, 479001600, 6227020800};
  Vector<T> sum = Vector<T>{} + T(1 / FACTORIAL[TERMS]);
  UNROLL for (int k = TERMS - 1; k >= 0; --k) sum = sum * r + T(1 / FACTORIAL[k]);
  Vector<Integer<T>> bits, power;
  std::memcpy(&bits, &sum, sizeof sum), std::memcpy(&power, &shifted, sizeof shifted);
  bits += power << DIGITS;  // times 2^n
  std::memcpy(&sum, &bits, sizeof sum);
  return x < LEAST ? Vector<T>{} : sum;
}
