// Risks and gradients at several weights in one pass over the samples: `gradients_in_blocks` of `network`, which says what is
// computed.
//
// A block of samples is turned once, so that a register holds one number of several samples; a few starts at a time go
// through all of it (logits, slopes, their way back to the weights) without leaving the cache.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "elementary.h"
#include "kernel.h"
#include "vectors.h"

constexpr int TILE = BYTES == 64 ? 4 : 2;  // rows and columns whose sums are kept in registers together
constexpr int64_t GROUPS = 8;              // of samples that go together

// A tile of registers has the samples of a group. Inputs are (group, dim, tile), logits and slopes (group, row, tile), so that
// what is used together lies together; rows and dimensions come in tiles, too.
template <typename T>
constexpr int64_t GROUP = TILE * WIDTH<T>;

// z = w x, where w are the weights with the other sign.
template <typename T>
void logits(int64_t rows, int64_t dim, const T* w, const Vector<T>* x, Vector<T>* z) {
  for (int64_t i = 0; i < rows; i += TILE) {
    Vector<T> sum[TILE][TILE] = {};
    for (int64_t k = 0; k < dim; ++k) {
      Vector<T> right[TILE];
      UNROLL for (int q = 0; q < TILE; ++q) right[q] = held<T>(x[k * TILE + q]);
      UNROLL for (int r = 0; r < TILE; ++r) {
        const Vector<T> left = held<T>(all<T>(w[(i + r) * dim + k]));
        UNROLL for (int q = 0; q < TILE; ++q) sum[r][q] += left * right[q];
      }
    }
    UNROLL for (int r = 0; r < TILE; ++r)
      UNROLL for (int q = 0; q < TILE; ++q) z[(i + r) * TILE + q] = sum[r][q];
  }
}

// found += z x^T over all groups: (row, dim), each a sum that is still spread over a register.
template <typename T>
void pull_back(int64_t groups, int64_t rows, int64_t dim, const Vector<T>* z, const Vector<T>* x, Vector<T>* found) {
  for (int64_t k = 0; k < dim; k += TILE)
    for (int64_t i = 0; i < rows; i += TILE) {
      Vector<T> sum[TILE][TILE];
      UNROLL for (int r = 0; r < TILE; ++r)
        UNROLL for (int q = 0; q < TILE; ++q) sum[r][q] = found[(i + r) * dim + k + q];
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t n = 0; n < TILE; ++n) {
          const Vector<T>*rights = x + (g * dim + k) * TILE + n, *lefts = z + (g * rows + i) * TILE + n;
          Vector<T> right[TILE];
          UNROLL for (int q = 0; q < TILE; ++q) right[q] = held<T>(rights[q * TILE]);
          UNROLL for (int r = 0; r < TILE; ++r) {
            const Vector<T> left = held<T>(lefts[r * TILE]);
            UNROLL for (int q = 0; q < TILE; ++q) sum[r][q] += left * right[q];
          }
        }
      UNROLL for (int r = 0; r < TILE; ++r)
        UNROLL for (int q = 0; q < TILE; ++q) found[(i + r) * dim + k + q] = sum[r][q];
    }
}

// The slopes of one start in the place of -z (neuron, tile), z the logits of a sigmoid, times the shares of samples in the
// mean and the speed of the activation. Returns the risk, still spread over a register, if it is wanted.
template <bool VALUED, typename T>
Vector<T> slopes(int64_t neurons, T speed, const Vector<T>* labels, const Vector<T>* shares, Vector<T>* z) {
  const Vector<T> lowest = all<T>(Elementary<T>::LOWEST), highest = all<T>(T(0.9) * Elementary<T>::HIGHEST);
  const Vector<T> tiny = all<T>(T(1e-300)), one = all<T>(1);
  Vector<T> up[TILE] = {}, down[TILE] = {}, risk = {};  // K H and K (1 - H)
  for (int64_t j = 0; j < neurons; ++j) {
    Vector<T> large[TILE];
    UNROLL for (int q = 0; q < TILE; ++q) {
      const Vector<T> here = z[j * TILE + q], low = here < lowest ? lowest : here;
      large[q] = low > highest ? highest : low;
    }
    to_exp<T>(large);
    UNROLL for (int q = 0; q < TILE; ++q) {
      const Vector<T> here = one / (one + large[q]), there = large[q] * here;
      up[q] += here, down[q] += there, z[j * TILE + q] = here * there;
    }
  }
  UNROLL for (int q = 0; q < TILE; ++q) {
    const Vector<T> here = up[q] < tiny ? tiny : up[q], there = down[q] < tiny ? tiny : down[q];
    const Vector<T> label = labels[q], other = one - label;
    if (VALUED) {
      const T each = 1 / T(neurons);
      risk -= shares[q] * (label * log_of<T>(here * each) + other * log_of<T>(there * each));
    }
    up[q] = shares[q] * speed * (other * here - label * there) / (here * there);
  }
  for (int64_t j = 0; j < neurons; ++j)
    UNROLL for (int q = 0; q < TILE; ++q) z[j * TILE + q] *= up[q];
  return risk;
}

// A group of samples; where there are too few, they are zeros that have no share.
template <typename T>
void turn(const T* inputs, const T* labels, int64_t count, int64_t dim, T share, T* x, T* y, T* shares) {
  for (int64_t n = 0; n < GROUP<T>; ++n) y[n] = n < count ? labels[n] : T(0), shares[n] = n < count ? share : T(0);
  for (int64_t k = 0; k < dim; ++k)
    if (count >= GROUP<T>)
      for (int64_t n = 0; n < GROUP<T>; ++n) x[k * GROUP<T> + n] = inputs[n * dim + k];
    else
      for (int64_t n = 0; n < GROUP<T>; ++n) x[k * GROUP<T> + n] = n < count ? inputs[n * dim + k] : T(0);
}

// Given: weights (start, dim, neuron); inputs (sample, dim); labels (sample). Found: risks (start), or zeros; gradients (start, dim,
// neuron).
template <typename T>
void gradients(Call call) {
  using V = Vector<T>;
  const T *weights = call.given<T>(0), *inputs = call.given<T>(1), *labels = call.given<T>(2);
  T *risks = call.found<T>(0), *found = call.found<T>(1);
  const int64_t *shape = call.shape(0), starts = shape[0], own_dim = shape[1], neurons = shape[2];
  const int64_t samples = call.count_given(2), speed = call.number("speed");
  const int64_t dim = rounded_up(own_dim, TILE), rows = rounded_up(starts * neurons, TILE);
  Zeros<T> w(rows * dim), x(GROUPS * dim * GROUP<T>), y(GROUPS * GROUP<T>), shares(GROUPS * GROUP<T>);
  Zeros<V> z(GROUPS * TILE * TILE * neurons), sums(rows * dim), risk(starts);
  for (int64_t s = 0; s < starts; ++s)
    for (int64_t k = 0; k < own_dim; ++k)
      for (int64_t j = 0; j < neurons; ++j)
        w[(s * neurons + j) * dim + k] = T(-speed) * weights[(s * own_dim + k) * neurons + j];
  const auto slope = call.number("valued") ? slopes<true, T> : slopes<false, T>;
  const V *in = &at<T>(x), *label = &at<T>(y), *share = &at<T>(shares);
  for (int64_t begin = 0; begin < samples; begin += GROUPS * GROUP<T>) {
    const int64_t groups = std::min(GROUPS, (samples - begin + GROUP<T> - 1) / GROUP<T>);
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t n = begin + g * GROUP<T>;
      turn<T>(inputs + n * own_dim, labels + n, samples - n, own_dim, 1 / T(samples),
              x + g * dim * GROUP<T>, y + g * GROUP<T>, shares + g * GROUP<T>);
    }
    for (int64_t s = 0; s < starts; s += TILE) {  // a tile of starts has whole tiles of rows
      const int64_t some = std::min<int64_t>(TILE, starts - s), few = rounded_up(some * neurons, TILE);
      for (int64_t g = 0; g < groups; ++g) {
        V* here = z + g * few * TILE;
        logits<T>(few, dim, w + s * neurons * dim, in + g * dim * TILE, here);
        for (int64_t q = 0; q < some; ++q)
          risk[s + q] += slope(neurons, T(speed), label + g * TILE, share + g * TILE, here + q * neurons * TILE);
      }
      pull_back<T>(groups, few, dim, z, in, sums + s * neurons * dim);
    }
  }
  for (int64_t s = 0; s < starts; ++s) {
    risks[s] = sum_of<T>(risk[s]);
    for (int64_t k = 0; k < own_dim; ++k)
      for (int64_t j = 0; j < neurons; ++j)
        found[(s * own_dim + k) * neurons + j] = sum_of<T>(sums[(s * neurons + j) * dim + k]);
  }
}

KERNEL(imbalance_gradients,
        "weights T[start dim neuron], inputs T[sample dim], labels T[sample] "
        "-> risks T[start], gradients T[start dim neuron]",
        gradients)
