// Inner products of rows that lie anywhere, of any length.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "products.h"
#include "vectors.h"

template <int SIZE, typename Part>
inline void sized(int64_t size, Part part) {
  if (size == SIZE)
    part(std::integral_constant<int, SIZE>{});
  else if constexpr (SIZE > 1)
    sized<SIZE - 1>(size, part);
}

// Blocks of nearly the same size, at most MOST: `part(begin, size)` for all of `count` rows, the size as a constant of the
// compiler. A small block at the end would wait for its own sums.
template <int MOST, typename Part>
inline void in_blocks(int64_t count, Part part) {
  const int64_t blocks = (count + MOST - 1) / MOST;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t begin = count * block / blocks, end = count * (block + 1) / blocks;
    sized<MOST>(end - begin, [&](auto size) { part(begin, size); });
  }
}

// The last numbers of a row that do not fill a vector, behind zeros (or before them, where the row is shorter than a vector).
template <typename T>
struct Tail {
  int64_t length, whole, rest;
  Vector<T> kept = {};  // 1 for those numbers, 0 for those that the vector before has too

  explicit Tail(int64_t length) : length(length), whole(length / WIDTH<T> * WIDTH<T>), rest(length - whole) {
    for (int64_t q = WIDTH<T> - rest; q < WIDTH<T>; ++q) kept[q] = 1;
  }
  Vector<T> of(const T* row) const {
    const Vector<T> zero = {};
    if (length >= WIDTH<T>) return kept != zero ? at(row + length - WIDTH<T>) : zero;
    T part[WIDTH<T>] = {};
    std::memcpy(part, row, length * sizeof(T));
    return at(part);
  }
};

// found[r][s] = <a_r, b_s> for all pairs of `count` rows each.
template <typename T>
inline void inner_products(const T* const* a, const T* const* b, int64_t count, const Tail<T>& tail, T* found) {
  constexpr int64_t W = WIDTH<T>, DOWN = W >= 8 ? 4 : 2, ACROSS = W / DOWN;
  for (int64_t i = 0; i < count; i += DOWN)
    for (int64_t j = 0; j < count; j += ACROSS) {
      const T *left[DOWN], *right[ACROSS];
      UNROLL for (int r = 0; r < DOWN; ++r) left[r] = a[i + r < count ? i + r : count - 1];
      UNROLL for (int s = 0; s < ACROSS; ++s) right[s] = b[j + s < count ? j + s : count - 1];
      Vector<T> sum[W] = {};
      const auto add = [&](auto of) {
        Vector<T> here[ACROSS];
        UNROLL for (int s = 0; s < ACROSS; ++s) here[s] = of(right[s]);
        UNROLL for (int r = 0; r < DOWN; ++r) {
          const Vector<T> one = of(left[r]);
          UNROLL for (int s = 0; s < ACROSS; ++s) sum[r * ACROSS + s] += one * here[s];
        }
      };
      for (int64_t h = 0; h < tail.whole; h += W) add([h](const T* row) { return at(row + h); });
      if (tail.rest) add([&tail](const T* row) { return tail.of(row); });
      T part[W];
      at(part) = sums_of<T>(sum);
      for (int64_t r = 0; r < DOWN && i + r < count; ++r) {
        T *to = found + (i + r) * count + j, *from = part + r * ACROSS;
        if (j + ACROSS <= count)
          std::memcpy(to, from, ACROSS * sizeof(T));
        else
          std::copy(from, from + count - j, to);
      }
    }
}

// found[r] = <a_r, b_r> for `count` rows; `stride` lies between two of them (0: always the same).
template <typename T>
inline void inner_products(const T* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t count, const Tail<T>& tail,
                           T* found) {
  constexpr int64_t W = WIDTH<T>;
  for (int64_t i = 0; i < count; i += W) {
    Vector<T> sum[W] = {};
    for (int64_t r = 0; r < W && i + r < count; ++r) {
      const T *left = a + (i + r) * a_stride, *right = b + (i + r) * b_stride;
      for (int64_t h = 0; h < tail.whole; h += W) sum[r] += at(left + h) * at(right + h);
      if (tail.rest) sum[r] += tail.of(left) * tail.of(right);
    }
    const Vector<T> sums = sums_of<T>(sum);
    std::memcpy(found + i, &sums, (i + W <= count ? W : count - i) * sizeof(T));
  }
}
