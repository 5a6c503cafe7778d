// Products of small matrices that lie in the cache.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "vectors.h"

constexpr int TILE_ROWS = BYTES == 64 ? 8 : 4, TILE_COLUMNS = 2;  // of vectors that a product keeps in registers

// A matrix by rows, `stride` numbers apart.
template <typename T>
struct Matrix {
  T* numbers;
  int64_t stride;
};

// One tile of the product below, with its upper left corner at (i, j).
template <int ROWS, bool TURNED, bool ADDED, typename T>
inline void tile(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, int64_t i, int64_t j, int64_t inner, int64_t columns) {
  constexpr int64_t W = WIDTH<T>;
  Vector<T> sum[ROWS][TILE_COLUMNS] = {};
  for (int64_t k = 0; k < inner; ++k) {
    Vector<T> right[TILE_COLUMNS];
    UNROLL for (int q = 0; q < TILE_COLUMNS; ++q) right[q] = at(b.numbers + k * b.stride + j + q * W);
    UNROLL for (int r = 0; r < ROWS; ++r) {
      const T left = a.numbers[TURNED ? k * a.stride + i + r : (i + r) * a.stride + k];
      UNROLL for (int q = 0; q < TILE_COLUMNS; ++q) sum[r][q] += left * right[q];
    }
  }
  UNROLL for (int r = 0; r < ROWS; ++r)
    UNROLL for (int q = 0; q < TILE_COLUMNS; ++q) {
      T* to = c.numbers + (i + r) * c.stride + j + q * W;
      const int64_t left = columns - j - q * W;
      if (left >= W)
        at(to) = ADDED ? at(to) + sum[r][q] : sum[r][q];
      else if (left > 0)
        std::memcpy(to, &sum[r][q], left * sizeof(T));
    }
}

// c = a b, or with a TURNED a^T b, or ADDED to c. Rows of b are readable up to a multiple of TILE_COLUMNS vectors. What is added
// has a multiple of TILE_ROWS rows and of WIDTH columns.
template <bool TURNED, bool ADDED, typename T>
void product(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, int64_t rows, int64_t inner, int64_t columns) {
  for (int64_t j = 0; j < columns; j += TILE_COLUMNS * WIDTH<T>)
    if (rows < TILE_ROWS)
      for (int64_t i = 0; i < rows; ++i) tile<1, TURNED, ADDED, T>(a, b, c, i, j, inner, columns);
    else  // the last tile begins earlier where rows are no multiple
      for (int64_t i = 0; i < rows; i += TILE_ROWS)
        tile<TILE_ROWS, TURNED, ADDED, T>(a, b, c, std::min(i, rows - TILE_ROWS), j, inner, columns);
}
