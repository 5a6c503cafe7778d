// Loss and gradient of network (T) in one pass over the patches: `_pulled` of this package, which says what is computed.
//
// XLA copies a block of samples out of memory before it multiplies, and waits for memory while it does; here a block is
// projected, multiplied with the scores and pulled back where it lies, and the next one is fetched into the cache meanwhile.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernel.h"
#include "vectors.h"

constexpr int ROWS = BYTES == 64 ? 8 : 4, COLUMNS = 2;  // of vectors that a product keeps in registers
constexpr int STREAMS = 4;                              // dimensions that are read together
constexpr int FETCHED = 3;                              // cache lines fetched in every round of a product

// What is fetched into the cache while products are made.
struct Ahead {
  const char *next, *end;

  void fetch() {
    if (next >= end) return;
    UNROLL for (int k = 0; k < FETCHED; ++k) __builtin_prefetch(next + k * LINE, 0, 2);
    next += FETCHED * LINE;
  }
};

// c = a b, or c += a^T b; all with rows of `stride` numbers, `rows` a multiple of ROWS and `stride` of COLUMNS vectors.
template <bool ADDED, typename T>
void product(const T* a, const T* b, T* c, int64_t stride, int64_t rows, int64_t inner, Ahead& ahead) {
  constexpr int64_t W = WIDTH<T>;
  for (int64_t j = 0; j < stride; j += COLUMNS * W)
    for (int64_t i = 0; i < rows; i += ROWS) {
      T* corner = c + i * stride + j;
      Vector<T> sum[ROWS][COLUMNS] = {};
      if (ADDED)
        UNROLL for (int r = 0; r < ROWS; ++r)
          UNROLL for (int q = 0; q < COLUMNS; ++q) sum[r][q] = at(corner + r * stride + q * W);
      for (int64_t k = 0; k < inner; ++k) {
        Vector<T> right[COLUMNS];
        UNROLL for (int q = 0; q < COLUMNS; ++q) right[q] = at(b + k * stride + j + q * W);
        UNROLL for (int r = 0; r < ROWS; ++r) {
          const T left = ADDED ? a[k * stride + i + r] : a[(i + r) * stride + k];
          UNROLL for (int q = 0; q < COLUMNS; ++q) sum[r][q] += left * right[q];
        }
        ahead.fetch();
      }
      UNROLL for (int r = 0; r < ROWS; ++r)
        UNROLL for (int q = 0; q < COLUMNS; ++q) at(corner + r * stride + q * W) = sum[r][q];
    }
}

// u = sum_k v_k x_k: the projections of a block, `count` numbers for each of its dimensions.
template <typename T>
void project(const T* x, const T* value, int64_t dimension, int64_t count, T* u) {
  std::fill(u, u + count, T(0));
  int64_t k = 0;
  for (; k + STREAMS <= dimension; k += STREAMS) {
    const T *row = x + k * count, *v = value + k;
    int64_t c = 0;
    for (; c + WIDTH<T> <= count; c += WIDTH<T>) {
      Vector<T> sum = at(u + c);
      UNROLL for (int q = 0; q < STREAMS; ++q) sum += v[q] * at(row + q * count + c);
      at(u + c) = sum;
    }
    for (; c < count; ++c)
      for (int q = 0; q < STREAMS; ++q) u[c] += v[q] * row[q * count + c];
  }
  for (; k < dimension; ++k)
    for (int64_t c = 0; c < count; ++c) u[c] += value[k] * x[k * count + c];
}

// pulled_k += <x_k, w>, spread over the numbers of a vector.
template <typename T>
void pull_back(const T* x, const T* w, int64_t dimension, int64_t count, T* pulled) {
  int64_t k = 0;
  for (; k + STREAMS <= dimension; k += STREAMS) {
    const T* row = x + k * count;
    Vector<T> sum[STREAMS] = {};
    int64_t c = 0;
    for (; c + WIDTH<T> <= count; c += WIDTH<T>) {
      const Vector<T> weight = at(w + c);
      UNROLL for (int q = 0; q < STREAMS; ++q) sum[q] += weight * at(row + q * count + c);
    }
    for (int q = 0; q < STREAMS; ++q) {
      at(pulled + (k + q) * WIDTH<T>) += sum[q];
      for (int64_t rest = c; rest < count; ++rest) pulled[(k + q) * WIDTH<T>] += w[rest] * row[q * count + rest];
    }
  }
  for (; k < dimension; ++k)
    for (int64_t c = 0; c < count; ++c) pulled[k * WIDTH<T>] += w[c] * x[k * count + c];
}

// y F of one sample from its z, which becomes y sg(-yF) D act'(z).
template <typename T>
T pull_of(T* z, int64_t stride, int64_t patches, T label, T linear, int64_t degree) {
  Vector<T> sum = {};
  for (int64_t j = 0; j < stride; j += WIDTH<T>) {
    const Vector<T> here = at(z + j), square = here * here;
    Vector<T> power = square;
    for (int64_t p = 3; p < degree; p += 2) power *= square;
    sum += here * (power + linear);
    at(z + j) = T(degree) * power + linear;
  }
  const T margin = label * sum_of<T>(sum), weight = label * T(patches) / (1 + std::exp(margin));
  for (int64_t j = 0; j < stride; j += WIDTH<T>) at(z + j) *= weight;
  return margin;
}

// Given: scores; value; linear; patches (blocks, dimension, samples, positions); labels (blocks, samples).
// Found: margins, -dL/dS, -dL/dv.
template <typename T>
void pulled(Call call) {
  const T *scores = call.given<T>(0), *value = call.given<T>(1), linear = *call.given<T>(2);
  const T *patches = call.given<T>(3), *labels = call.given<T>(4);
  T *margins = call.found<T>(0), *pulled_scores = call.found<T>(1), *pulled_value = call.found<T>(2);
  const int64_t* shape = call.shape(3);
  const int64_t blocks = shape[0], dimension = shape[1], block = shape[2], count = shape[3];
  const int64_t degree = call.number("degree");
  const int64_t stride = rounded_up(count, std::max<int64_t>(COLUMNS * WIDTH<T>, ROWS)), rows = rounded_up(block, ROWS);
  Zeros<T> plain(stride * stride), turned(stride * stride), found(stride * stride), found_value(dimension * WIDTH<T>);
  Zeros<T> u(rows * stride), z(rows * stride), w(rows * stride), row(block * count);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < count; ++j) {
      plain[i * stride + j] = scores[i * count + j];
      turned[j * stride + i] = T(count) * plain[i * stride + j];
    }
  for (int64_t n = 0; n < blocks; ++n) {
    const int64_t size = dimension * block * count;
    const T* x = patches + n * size;
    Ahead ahead{reinterpret_cast<const char*>(x + size), reinterpret_cast<const char*>(x + 2 * size)};
    project<T>(x, value, dimension, block * count, row);
    for (int64_t s = 0; s < block; ++s) std::memcpy(u + s * stride, row + s * count, count * sizeof(T));
    product<false, T>(u, turned, z, stride, rows, count, ahead);
    for (int64_t s = 0; s < block; ++s)
      margins[n * block + s] = pull_of<T>(z + s * stride, stride, count, labels[n * block + s], linear, degree);
    product<true, T>(z, u, found, stride, stride, block, ahead);
    product<false, T>(z, plain, w, stride, rows, count, ahead);
    for (int64_t s = 0; s < block; ++s) std::memcpy(row + s * count, w + s * stride, count * sizeof(T));
    pull_back<T>(x, row, dimension, block * count, found_value);
  }
  for (int64_t i = 0; i < count; ++i) std::memcpy(pulled_scores + i * count, found + i * stride, count * sizeof(T));
  for (int64_t k = 0; k < dimension; ++k) pulled_value[k] = sum_of<T>(at(found_value + k * WIDTH<T>));
}

HANDLER(pulled_float32, pulled<float>)
HANDLER(pulled_float64, pulled<double>)
