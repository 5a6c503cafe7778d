// Products whose numbers go through a function of their own before they leave the registers.

#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "products.h"
#include "vectors.h"

constexpr int HIGH = 6, BROAD = BYTES == 64 ? 4 : 2;  // rows and registers of a block in `product`
constexpr int PAIRS = BYTES == 64 ? 8 : 6;            // rows that `dots` pairs with two others

#define FLAT __attribute__((flatten)) inline  // with all that it calls in one piece

template <int SIZE, typename Part>
inline void sized(int64_t size, const Part& part) {
  if (size == SIZE)
    part(std::integral_constant<int, SIZE>{});
  else if constexpr (SIZE > 1)
    sized<SIZE - 1>(size, part);
}

// Cuts `count` into parts of nearly the same size, at most MOST: calls `part(begin, size)` with a size known when compiled.
template <int MOST, typename Part>
inline void in_parts(int64_t count, const Part& part) {
  for (int64_t begin = 0, parts = (count + MOST - 1) / MOST; parts; --parts) {
    const int64_t size = (count - begin + parts - 1) / parts;
    sized<MOST>(size, [&](auto known) { part(begin, known); });
    begin += size;
  }
}

// The same with parts of MOST, and what is left one by one: less to compile.
template <int MOST, typename Part>
inline void in_whole_parts(int64_t count, const Part& part) {
  int64_t begin = 0;
  for (; begin + MOST <= count; begin += MOST) part(begin, std::integral_constant<int, MOST>{});
  for (; begin < count; ++begin) part(begin, std::integral_constant<int, 1>{});
}

// Calls `keep(i)(j, sum)` with every register of row i of the product a b, its numbers from the j-th on; rows are `broad`
// registers, and b has `inner` rows of `stride` numbers.
template <typename T, typename Keep>
FLAT void product_kept(Left<T> a, const T* b, int64_t stride, int64_t rows, int64_t broad, int64_t inner, const Keep& keep) {
  in_whole_parts<BROAD>(broad, [&](int64_t j, auto columns) {
    in_parts<HIGH>(rows, [&](int64_t i, auto height) {
      constexpr int R = decltype(height)::value, C = decltype(columns)::value;
      const T *left = a.at + i * a.row, *right = b + j * WIDTH<T>;
      Vector<T> sum[R][C] = {};
      for (int64_t k = 0; k < inner; ++k, left += a.column, right += stride) {
        Vector<T> here[C];
        UNROLL for (int q = 0; q < C; ++q) here[q] = at(right + q * WIDTH<T>);
        UNROLL for (int r = 0; r < R; ++r)
          UNROLL for (int q = 0; q < C; ++q) sum[r][q] += left[r * a.row] * here[q];
      }
      UNROLL for (int r = 0; r < R; ++r) {
        const auto keep_at = keep(i + r);
        UNROLL for (int q = 0; q < C; ++q) keep_at((j + q) * WIDTH<T>, sum[r][q]);
      }
    });
  });
}

// Calls `keep(i, j, sum)` with the inner products of the rows of a and of b, which are `length` registers long.
template <typename T, typename Keep>
FLAT void dots(const T* a, int64_t a_stride, int64_t rows, const T* b, int64_t b_stride, int64_t columns, int64_t length,
                 const Keep& keep) {
  constexpr int64_t W = WIDTH<T>;
  constexpr int COUNT = (2 * PAIRS + W - 1) / W * W;  // sums are taken of whole registers
  for (int64_t i = 0; i < rows; i += PAIRS)
    for (int64_t j = 0; j < columns; j += 2) {
      const T *left[PAIRS], *first = b + j * b_stride, *second = b + std::min(j + 1, columns - 1) * b_stride;
      UNROLL for (int r = 0; r < PAIRS; ++r) left[r] = a + std::min(i + r, rows - 1) * a_stride;
      Vector<T> sum[COUNT] = {};
      for (int64_t k = 0; k < length * W; k += W) {
        const Vector<T> one = at(first + k), two = at(second + k);
        UNROLL for (int r = 0; r < PAIRS; ++r) {
          const Vector<T> here = at(left[r] + k);
          sum[2 * r] += here * one, sum[2 * r + 1] += here * two;
        }
      }
      alignas(LINE) T found[COUNT];
      for (int64_t n = 0; n < COUNT; n += W) at(found + n) = sums_of<T>(sum + n);
      for (int64_t r = 0; r < std::min<int64_t>(PAIRS, rows - i); ++r)
        for (int64_t q = 0; q < std::min<int64_t>(2, columns - j); ++q) keep(i + r, j + q, found[2 * r + q]);
    }
}
