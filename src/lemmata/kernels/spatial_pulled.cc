// Loss and gradient of network (T) in one pass over the patches: `_pulled` of this package, which says what is computed.
//
// XLA copies a block of samples out of memory before it multiplies, and waits for memory while it does; here a block is
// projected, multiplied with the scores and pulled back where it lies, and the next one is fetched into the cache meanwhile.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "elementary.h"
#include "kernel.h"
#include "products.h"
#include "vectors.h"

constexpr int STREAMS = 4;                    // dimensions that are read together
constexpr int FETCHED = BYTES == 64 ? 3 : 1;  // cache lines fetched in every round of a product: smaller tiles have more rounds

// What is fetched into the cache while products are made.
struct Ahead {
  const char *next, *end;

  void operator()() {
    if (next >= end) return;
    UNROLL for (int k = 0; k < FETCHED; ++k) __builtin_prefetch(next + k * LINE, 0, 2);
    next += FETCHED * LINE;
  }
};

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

// y F of some samples, one for each number of a vector, from their z, which become y sg(-yF) D act'(z).
template <typename T>
Vector<T> pull_of(T* z, int64_t stride, int64_t patches, Vector<T> label, T linear, int64_t degree) {
  constexpr int64_t W = WIDTH<T>;
  Vector<T> sum[W] = {};
  for (int64_t s = 0; s < W; ++s)
    for (int64_t j = 0; j < stride; j += W) {
      T* place = z + s * stride + j;
      const Vector<T> here = at(place), square = here * here;
      Vector<T> power = square;
      for (int64_t p = 3; p < degree; p += 2) power *= square;
      sum[s] += here * (power + linear);
      at(place) = T(degree) * power + linear;
    }
  const Vector<T> margin = label * sums_of<T>(sum);
  T weight[W];
  at(weight) = label * T(patches) / (1 + exp_of<T>(margin));
  for (int64_t s = 0; s < W; ++s)
    for (int64_t j = 0; j < stride; j += W) at(z + s * stride + j) *= weight[s];
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
  constexpr int64_t W = WIDTH<T>;
  const int64_t stride = rounded_up(count, W), rows = rounded_up(block, W);
  Zeros<T> plain(stride * stride), turned(stride * stride), found(stride * stride), found_value(dimension * W);
  Zeros<T> u(rows * stride), z(rows * stride), w(rows * stride), row(block * count);
  const bool padded = count < stride;  // else samples lie there as they do in a block
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < count; ++j) {
      plain[i * stride + j] = scores[i * count + j];
      turned[j * stride + i] = T(count) * plain[i * stride + j];
    }
  for (int64_t n = 0; n < blocks; ++n) {
    const int64_t size = dimension * block * count;
    const T* x = patches + n * size;
    Ahead ahead{reinterpret_cast<const char*>(x + size), reinterpret_cast<const char*>(x + 2 * size)};
    project<T>(x, value, dimension, block * count, padded ? row : u);
    for (int64_t s = 0; padded && s < block; ++s) std::memcpy(u + s * stride, row + s * count, count * sizeof(T));
    product<false, T>(by_rows<T>(u, stride), {turned, stride}, {z, stride}, block, stride, count, ahead);
    for (int64_t s = 0; s < block; s += W) {
      const int64_t some = std::min(W, block - s);
      T label[W] = {}, margin[W];
      std::copy_n(labels + n * block + s, some, label);
      at(margin) = pull_of<T>(z + s * stride, stride, count, at(label), linear, degree);
      std::copy_n(margin, some, margins + n * block + s);
    }
    product<true, T>(by_columns<T>(z, stride), {u, stride}, {found, stride}, count, stride, block, ahead);
    product<false, T>(by_rows<T>(z, stride), {plain, stride}, {w, stride}, block, stride, count, ahead);
    for (int64_t s = 0; padded && s < block; ++s) std::memcpy(row + s * count, w + s * stride, count * sizeof(T));
    pull_back<T>(x, padded ? row : w, dimension, block * count, found_value);
  }
  for (int64_t i = 0; i < count; ++i) std::memcpy(pulled_scores + i * count, found + i * stride, count * sizeof(T));
  for (int64_t k = 0; k < dimension; ++k) pulled_value[k] = sum_of<T>(at(found_value + k * W));
}

KERNEL(spatial_pulled,
        "scores T[patch patch], value T[dim], linear T[], patches T[block dim sample patch], labels T[block sample] "
        "-> margins T[block sample], scores T[patch patch], value T[dim] "
        "where degree >= 3, degree % 2 == 1",
        pulled)
