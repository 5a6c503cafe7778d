// Products of matrices that lie in a cache, of any size and by rows, at the speed of large ones: parts of the result stay in
// registers until they are complete.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "vectors.h"

constexpr int MANY_ROWS = BYTES == 64 ? 12 : 6, TWO = 2;  // of vectors of a result that are made together: most registers
constexpr int ROWS_ALONG = BYTES == 64 ? 4 : 2, COLUMNS_ALONG = 4;  // of numbers that are sums along rows of both factors

template <typename T>
struct Matrix {
  T* at;
  int64_t stride;  // from row to row
  T* row(int64_t r) const { return at + r * stride; }
};

// A left factor: numbers from row to row, and from column to column; a matrix as it lies, or turned.
template <typename T>
struct Left {
  const T* at;
  int64_t row, column;
};
template <typename T>
Left<T> by_rows(const T* at, int64_t stride) {
  return {at, stride, 1};
}
template <typename T>
Left<T> by_columns(const T* at, int64_t stride) {
  return {at, 1, stride};
}

// What else is done in every round of a product: nothing, or the fetching of what comes after it.
struct Nothing {
  void operator()() const {}
};

// R rows and C vectors of a product, `apart` columns from vector to vector.
template <int R, int C, typename T, typename Also>
inline void tile(Left<T> a, Matrix<const T> b, int64_t apart, int64_t inner, Vector<T> (&sum)[R][C], Also& also) {
  for (int64_t k = 0; k < inner; ++k) {
    Vector<T> right[C];
    UNROLL for (int q = 0; q < C; ++q) right[q] = at(b.row(k) + q * apart);
    UNROLL for (int r = 0; r < R; ++r)
      UNROLL for (int q = 0; q < C; ++q) sum[r][q] += a.at[r * a.row + k * a.column] * right[q];
    also();
  }
}

// Vectors may have columns in common, which come out the same.
template <int R, int C, typename T, typename Also>
void whole_tile(bool added, Left<T> a, Matrix<const T> b, Matrix<T> c, int64_t apart, int64_t inner, Also& also) {
  Vector<T> sum[R][C] = {};
  if (added)
    UNROLL for (int r = 0; r < R; ++r) UNROLL for (int q = 0; q < C; ++q) sum[r][q] = at(c.row(r) + q * apart);
  tile<R, C, T>(a, b, apart, inner, sum, also);
  UNROLL for (int r = 0; r < R; ++r) UNROLL for (int q = 0; q < C; ++q) at(c.row(r) + q * apart) = sum[r][q];
}

// The last columns, fewer than a vector holds: made with some before them, which are left as they are.
template <int R, typename T, typename Also>
void last_tile(bool added, Left<T> a, Matrix<const T> b, Matrix<T> c, int64_t inner, int64_t rest, Also& also) {
  Vector<T> sum[R][1] = {};
  tile<R, 1, T>(a, {b.at + rest - WIDTH<T>, b.stride}, 0, inner, sum, also);
  for (int r = 0; r < R; ++r) {
    T found[WIDTH<T>];
    std::memcpy(found, &sum[r][0], sizeof found);
    for (int64_t j = 0; j < rest; ++j) c.row(r)[j] = found[WIDTH<T> - rest + j] + (added ? c.row(r)[j] : 0);
  }
}

// R rows, or fewer, of the next columns: two vectors of them, or all that are left.
template <int R, typename T, typename Also>
void any_tile(bool added, Left<T> a, Matrix<const T> b, Matrix<T> c, int64_t rows, int64_t inner, int64_t left, Also& also) {
  if constexpr (R > 1)
    if (rows < R) return any_tile<R - 1, T>(added, a, b, c, rows, inner, left, also);
  if (left > WIDTH<T>)
    whole_tile<R, TWO, T>(added, a, b, c, std::min(left - WIDTH<T>, WIDTH<T>), inner, also);
  else if (left == WIDTH<T>)
    whole_tile<R, 1, T>(added, a, b, c, 0, inner, also);
  else
    last_tile<R, T>(added, a, b, c, inner, left, also);
}

// c = a b, or c += a b.
template <bool ADDED, typename T, typename Also = const Nothing>
void product(Left<T> a, Matrix<const T> b, Matrix<T> c, int64_t rows, int64_t columns, int64_t inner, Also& also = Nothing{}) {
  if (columns < WIDTH<T>) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        T sum = ADDED ? c.row(i)[j] : 0;
        for (int64_t k = 0; k < inner; ++k) sum += a.at[i * a.row + k * a.column] * b.row(k)[j];
        c.row(i)[j] = sum;
      }
    return;
  }
  const int64_t parts = (rows + MANY_ROWS - 1) / MANY_ROWS;  // of about the same size
  for (int64_t j = 0; j < columns; j += TWO * WIDTH<T>)
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t i = rows * part / parts, end = rows * (part + 1) / parts;
      any_tile<MANY_ROWS, T>(ADDED, {a.at + i * a.row, a.row, a.column}, {b.at + j, b.stride}, {c.row(i) + j, c.stride},
                             end - i, inner, columns - j, also);
    }
}

// Where the numbers of two vectors go that are put together: blocks of SIZE of them in turns, inside lanes of 16 bytes, which is
// cheap, and whole lanes at last. Of every two blocks one is the `odd` one.
template <int WIDE, int LANE, int SIZE>
constexpr int place_of(int place, int odd) {
  if (SIZE < LANE) {
    const int lane = place / LANE * LANE, block = place % LANE / SIZE;
    return block % 2 * WIDE + lane + block / 2 * SIZE + place % SIZE + odd * (LANE / 2);
  }
  const int half = WIDE / LANE / 2, lane = place / LANE;
  return lane / half * WIDE + (2 * (lane % half) + odd) * LANE + place % LANE;
}

template <int WIDE, int LANE, int SIZE, typename V, typename Both, int... PLACE>
inline V put_together(V a, V b, Both both, std::integer_sequence<int, PLACE...>) {
  return both(shuffled<place_of<WIDE, LANE, SIZE>(PLACE, 0)...>(a, b), shuffled<place_of<WIDE, LANE, SIZE>(PLACE, 1)...>(a, b));
}

// Each of as many vectors as a vector has numbers made one number, in order: `both` puts two together.
template <int WIDE, int SIZE = 1, typename V, typename Both>
inline V across(V* many, Both both) {
  constexpr int LANE = 16 * WIDE / sizeof(V);
  UNROLL for (int q = 0; q < WIDE / SIZE / 2; ++q)
    many[q] = put_together<WIDE, LANE, SIZE>(many[2 * q], many[2 * q + 1], both, std::make_integer_sequence<int, WIDE>{});
  if constexpr (2 * SIZE < WIDE) return across<WIDE, 2 * SIZE>(many, both);
  return many[0];
}

template <typename T>
inline Vector<T> sums_of(Vector<T>* many) {
  return across<WIDTH<T>>(many, [](Vector<T> a, Vector<T> b) { return a + b; });
}

template <typename T>
inline Vector<T> largest_of(Vector<T>* many) {
  return across<WIDTH<T>>(many, [](Vector<T> a, Vector<T> b) { return a > b ? a : b; });
}

template <typename T, int SIZE, int... PLACE>
inline void exchange(Vector<T>& a, Vector<T>& b, std::integer_sequence<int, PLACE...>) {
  const Vector<T> one = a, other = b;
  a = shuffled<(PLACE & SIZE ? int(WIDTH<T>) + PLACE - SIZE : PLACE)...>(one, other);
  b = shuffled<(PLACE & SIZE ? int(WIDTH<T>) + PLACE : PLACE + SIZE)...>(one, other);
}

// The matrix of as many vectors as a vector has numbers, turned.
template <typename T, int SIZE = WIDTH<T> / 2>
inline void turned_block(Vector<T>* many) {
  UNROLL for (int q = 0; q < WIDTH<T>; ++q)
    if (!(q & SIZE)) exchange<T, SIZE>(many[q], many[q + SIZE], std::make_integer_sequence<int, WIDTH<T>>{});
  if constexpr (SIZE > 1) turned_block<T, SIZE / 2>(many);
}

// b = a^T, where the sides of a are whole vectors.
template <typename T>
void turn(Matrix<const T> a, Matrix<T> b, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i += WIDTH<T>)
    for (int64_t j = 0; j < columns; j += WIDTH<T>) {
      Vector<T> block[WIDTH<T>];
      UNROLL for (int q = 0; q < WIDTH<T>; ++q) block[q] = at(a.row(i + q) + j);
      turned_block<T>(block);
      UNROLL for (int q = 0; q < WIDTH<T>; ++q) at(b.row(j + q) + i) = block[q];
    }
}

// R rows and some columns of a b^T.
template <int R, typename T>
void tile_along(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, int64_t rows, int64_t columns, int64_t inner) {
  if constexpr (R > 1)
    if (rows < R) return tile_along<R - 1, T>(a, b, c, rows, columns, inner);
  constexpr int64_t W = WIDTH<T>, C = COLUMNS_ALONG, ALL = (R * C + W - 1) / W * W;
  const int64_t whole = inner / W * W, rest = inner - whole;
  const T* right[C];
  for (int q = 0; q < C; ++q) right[q] = b.row(std::min<int64_t>(q, columns - 1));
  Vector<T> sum[ALL] = {};
  for (int64_t k = 0; k < whole; k += W) {
    Vector<T> here[C];
    UNROLL for (int q = 0; q < C; ++q) here[q] = held<T>(at(right[q] + k));
    UNROLL for (int r = 0; r < R; ++r) {
      const Vector<T> left = held<T>(at(a.row(r) + k));
      UNROLL for (int q = 0; q < C; ++q) sum[r * C + q] += left * here[q];
    }
  }
  if (rest && whole)
    for (int r = 0; r < R; ++r) {
      T end[W] = {};  // what is left over of a row, behind zeros
      std::copy(a.row(r) + whole, a.row(r) + inner, end + W - rest);
      UNROLL for (int q = 0; q < C; ++q) sum[r * C + q] += at(end) * at(right[q] + inner - W);
    }
  T found[ALL];
  UNROLL for (int64_t g = 0; g < ALL; g += W) at(found + g) = sums_of<T>(sum + g);
  if (!whole)
    for (int r = 0; r < R; ++r)
      for (int q = 0; q < C; ++q)
        for (int64_t k = 0; k < rest; ++k) found[r * C + q] += a.row(r)[k] * right[q][k];
  for (int r = 0; r < R; ++r)
    if (columns >= C)
      std::memcpy(c.row(r), found + r * C, C * sizeof(T));
    else
      std::copy(found + r * C, found + r * C + columns, c.row(r));
}

// c = a b^T, where both factors lie along what is summed over. Of b some rows at a time are read, and only once.
template <typename T>
void product_along(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, int64_t rows, int64_t columns, int64_t inner) {
  const int64_t parts = (rows + ROWS_ALONG - 1) / ROWS_ALONG;  // of about the same size
  for (int64_t j = 0; j < columns; j += COLUMNS_ALONG)
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t i = rows * part / parts, end = rows * (part + 1) / parts;
      tile_along<ROWS_ALONG, T>({a.row(i), a.stride}, {b.row(j), b.stride}, {c.row(i) + j, c.stride}, end - i, columns - j,
                                inner);
    }
}
