// Exponentials and logarithms of all numbers of a register, within two units in the last place.
//
// Polynomials interpolate at Chebyshev points; their own error is below a tenth of a unit. What is not a number stays none.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "vectors.h"

template <typename T>
struct Elementary;

template <>
struct Elementary<double> {
  using Word = uint64_t;
  using Whole = int64_t;
  static constexpr int MANTISSA = 52;
  // ln 2 in two parts, of which the first gives exact products with whole numbers.
  static constexpr double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;
  static constexpr double LOWEST = -708.39641853226411, HIGHEST = 709.78271289338397;  // exponentials are normal
  static constexpr double EXP[] = {0.5000000000000001,     0.16666666666666669,    0.041666666666623824,
                                   0.008333333333330039,   0.0013888888917367081,  0.00019841269863171557,
                                   2.4801521057868204e-05, 2.7557268276905696e-06, 2.7620201591031547e-07,
                                   2.5100472505694996e-08};
  static constexpr double LOG[] = {0.666666666666667,   0.3999999999989889,  0.28571428626253836, 0.22222211089379496,
                                   0.1818289243253687,  0.15331611722055008, 0.14617807153417325};
};

template <>
struct Elementary<float> {
  using Word = uint32_t;
  using Whole = int32_t;
  static constexpr int MANTISSA = 23;
  static constexpr float LN2_HIGH = 0x1.62ep-1f, LN2_LOW = 0x1.0bfbe8p-15f;
  static constexpr float LOWEST = -87.336544f, HIGHEST = 88.722839f;
  static constexpr float EXP[] = {0.5f, 0.16666576f, 0.041666552f, 0.008363233f, 0.001392625f};
  static constexpr float LOG[] = {0.66666687f, 0.3998876f, 0.29580986f};
};

// A number that is added and taken off again rounds to whole numbers, which stand in its lowest bits meanwhile.
template <typename T>
constexpr T ROUNDING = T(1.5) * T(typename Elementary<T>::Word(1) << Elementary<T>::MANTISSA);

// All numbers of a register the same.
template <typename T>
inline Vector<T> all(T value) {
  return Vector<T>{} + value;
}

template <typename T, size_t COUNT>
inline Vector<T> polynomial(const T (&coefficients)[COUNT], Vector<T> x) {
  Vector<T> sum = all<T>(coefficients[COUNT - 1]);
  UNROLL for (int k = int(COUNT) - 2; k >= 0; --k) sum = sum * x + coefficients[k];
  return sum;
}

// e^x of some registers for which it is a normal number. They go step by step together: one after another they would wait for
// their own steps.
template <typename T, size_t COUNT>
inline void to_exp(Vector<T> (&x)[COUNT]) {
  using E = Elementary<T>;
  using Words = Vector<typename E::Word>;
  constexpr T PER_LN2 = T(1.4426950408889634);
  constexpr int DEGREE = sizeof(E::EXP) / sizeof(T) - 1;
  Vector<T> raised[COUNT], sum[COUNT];
  UNROLL for (size_t q = 0; q < COUNT; ++q) raised[q] = x[q] * PER_LN2 + ROUNDING<T>;
  UNROLL for (size_t q = 0; q < COUNT; ++q) sum[q] = raised[q] - ROUNDING<T>;
  UNROLL for (size_t q = 0; q < COUNT; ++q) x[q] -= sum[q] * E::LN2_HIGH;
  UNROLL for (size_t q = 0; q < COUNT; ++q) x[q] -= sum[q] * E::LN2_LOW;
  UNROLL for (size_t q = 0; q < COUNT; ++q) sum[q] = x[q] * E::EXP[DEGREE] + E::EXP[DEGREE - 1];
  UNROLL for (int k = DEGREE - 2; k >= 0; --k)
    UNROLL for (size_t q = 0; q < COUNT; ++q) sum[q] = sum[q] * x[q] + E::EXP[k];
  UNROLL for (size_t q = 0; q < COUNT; ++q) sum[q] = (x[q] * x[q] * sum[q] + x[q]) + T(1);
  UNROLL for (size_t q = 0; q < COUNT; ++q) x[q] = (Vector<T>)((Words)sum[q] + ((Words)raised[q] << E::MANTISSA));
}

// e^x of numbers that are at most 0; 0 where it would not be a normal number.
template <typename T>
inline Vector<T> exp_below(Vector<T> x) {
  Vector<T> found[] = {x};
  to_exp<T>(found);
  return x < all<T>(Elementary<T>::LOWEST) ? Vector<T>{} : found[0];
}

// The same for vectors of several registers.
template <typename T, typename Wide>
inline Wide exp_below_of(Wide x) {
  constexpr size_t COUNT = sizeof(Wide) / sizeof(Vector<T>);
  static_assert(COUNT * sizeof(Vector<T>) == sizeof(Wide), "whole registers");
  Vector<T> parts[COUNT];
  std::memcpy(parts, &x, sizeof x);
  UNROLL for (size_t q = 0; q < COUNT; ++q) parts[q] = exp_below<T>(parts[q]);
  std::memcpy(&x, parts, sizeof x);
  return x;
}

// e^x.
template <typename T>
inline Vector<T> exp_of(Vector<T> x) {
  return x > all<T>(Elementary<T>::HIGHEST) ? all<T>(std::numeric_limits<T>::infinity()) : exp_below<T>(x);
}

// log((1 + s) / (1 - s)) of numbers up to 3 - sqrt(8).
template <typename T>
inline Vector<T> log_of_ratio(Vector<T> s) {
  const Vector<T> square = s * s;
  return s * square * polynomial(Elementary<T>::LOG, square) + (s + s);
}

// log(x) of positive normal numbers.
template <typename T>
inline Vector<T> log_of(Vector<T> x) {
  using E = Elementary<T>;
  using Words = Vector<typename E::Word>;
  using Wholes = Vector<typename E::Whole>;
  const Wholes half = (Wholes)all<T>(T(0.70710678118654752));
  const Wholes exponent = ((Wholes)x - half) >> E::MANTISSA;
  const Vector<T> near = (Vector<T>)((Words)x - ((Words)exponent << E::MANTISSA));  // from sqrt(1/2) to sqrt(2)
  const Vector<T> whole = (Vector<T>)((Wholes)all<T>(ROUNDING<T>) + exponent) - ROUNDING<T>;
  const Vector<T> found = log_of_ratio<T>((near - T(1)) / (near + T(1))) + whole * E::LN2_LOW;
  return whole * E::LN2_HIGH + found + (x - x);  // the last is 0, or not a number
}

// log(1 + x) of numbers from 0 to 1.
template <typename T>
inline Vector<T> log_one_plus(Vector<T> x) {
  const auto large = x > all<T>(T(0.41421356237309505));  // then log(2) + log((1 + x) / 2)
  const Vector<T> ratio = (large ? x - T(1) : x) / (x + (large ? all<T>(3) : all<T>(2)));
  return log_of_ratio<T>(ratio) + (large ? all<T>(T(0.69314718055994531)) : Vector<T>{});
}
