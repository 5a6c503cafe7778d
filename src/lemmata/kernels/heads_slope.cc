// Loss and gradient of heads in one pass over the samples: `slope_by_sums` of this package, which says what is computed.
//
// A register holds one number of several samples, so that the short sums over tokens and coordinates stay in registers
// and a sample is read once: what its queries contribute to the gradient is known but for one factor, the slope of the loss.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "elementary.h"
#include "kernel.h"
#include "vectors.h"

constexpr int TILE = BYTES == 64 ? 4 : 2;  // rows or columns whose sums are kept in registers together

// `work(begin, size)` for all parts of a range, whose sizes are constants.
template <int SIZE = TILE, typename Work>
inline void in_tiles(int64_t begin, int64_t end, Work work) {
  for (; begin + SIZE <= end; begin += SIZE) work(begin, std::integral_constant<int, SIZE>{});
  if constexpr (SIZE > 1) in_tiles<SIZE / 2>(begin, end, work);
}

// What follows is about several samples, one register a number; `x` is (token, dim). Dimensions are filled up with zeros to
// tiles, and tokens may be any number.

// X W.
template <typename T>
void asked(int64_t tokens, int64_t dim, const Vector<T>* x, const T* weights, Vector<T>* found) {
  in_tiles(0, tokens, [=](int64_t t, auto rows) {
    for (int64_t j = 0; j < dim; j += TILE) {
      Vector<T> sum[rows][TILE] = {};
      for (int64_t tile = 0; tile < dim; tile += TILE)
        UNROLL for (int k = 0; k < TILE; ++k) {
          Vector<T> right[TILE];
          UNROLL for (int q = 0; q < TILE; ++q) right[q] = all<T>(weights[(tile + k) * dim + j + q]);
          UNROLL for (int r = 0; r < rows; ++r) {
            const Vector<T> left = held<T>(x[(t + r) * dim + tile + k]);
            UNROLL for (int q = 0; q < TILE; ++q) sum[r][q] += left * right[q];
          }
        }
      UNROLL for (int r = 0; r < rows; ++r)
        UNROLL for (int q = 0; q < TILE; ++q) found[(t + r) * dim + j + q] = sum[r][q];
    }
  });
}

// The scores <asked_t, x_s> and the values v_ts = <U_t, x_s>.
template <typename T>
void scores(int64_t tokens, int64_t dim, const Vector<T>* x, const Vector<T>* asked, const T* decoder, Vector<T>* score,
            Vector<T>* value) {
  in_tiles(0, tokens, [=](int64_t t, auto some) {
    constexpr int rows = some;
    in_tiles<2>(0, tokens, [=](int64_t s, auto columns) {
      Vector<T> one[rows][columns] = {}, other[rows][columns] = {};
      for (int64_t tile = 0; tile < dim; tile += TILE)
        UNROLL for (int k = 0; k < TILE; ++k) {
          Vector<T> right[columns];
          UNROLL for (int q = 0; q < columns; ++q) right[q] = held<T>(x[(s + q) * dim + tile + k]);
          UNROLL for (int r = 0; r < rows; ++r) {
            const int64_t place = (t + r) * dim + tile + k;
            const Vector<T> left = held<T>(asked[place]), weight = held<T>(all<T>(decoder[place]));
            UNROLL for (int q = 0; q < columns; ++q) one[r][q] += left * right[q], other[r][q] += weight * right[q];
          }
        }
      UNROLL for (int r = 0; r < rows; ++r)
        UNROLL for (int q = 0; q < columns; ++q) {
          const int64_t place = (t + r) * tokens + s + q;
          score[place] = one[r][q], value[place] = other[r][q];
        }
    });
  });
}

// E = exp(score - largest) in the place of a query's scores. With Z the sum of E returns 1 / Z and the query's part in the
// output, p = sum_s E_s v_s / Z.
template <typename T>
inline void attended(int64_t tokens, Vector<T>* score, const Vector<T>* value, Vector<T>& share, Vector<T>& part) {
  Vector<T> largest = score[0], whole = {}, sum = {};
  for (int64_t s = 1; s < tokens; ++s) largest = score[s] > largest ? score[s] : largest;
  for (int64_t s = 0; s < tokens; ++s) {
    const Vector<T> raw = exp_below<T>(score[s] - largest);
    score[s] = raw, whole += raw, sum += raw * value[s];
  }
  share = T(1) / whole, part = sum * share;
}

// A X, and sum_s A_ts (v_ts - p_t) x_s of every query t.
template <typename T>
void mixed(int64_t tokens, int64_t dim, const Vector<T>* x, const Vector<T>* raw, const Vector<T>* value,
           const Vector<T>* share, const Vector<T>* part, Vector<T>* by_decoder, Vector<T>* back) {
  in_tiles<2>(0, tokens, [=](int64_t t, auto rows) {
    for (int64_t k = 0; k < dim; k += TILE) {
      Vector<T> one[rows][TILE] = {}, other[rows][TILE] = {};
      for (int64_t s = 0; s < tokens; ++s) {
        Vector<T> right[TILE];
        UNROLL for (int q = 0; q < TILE; ++q) right[q] = held<T>(x[s * dim + k + q]);
        UNROLL for (int r = 0; r < rows; ++r) {
          const int64_t place = (t + r) * tokens + s;
          const Vector<T> left = held<T>(raw[place]), weight = left * (value[place] - part[t + r]);
          UNROLL for (int q = 0; q < TILE; ++q) one[r][q] += left * right[q], other[r][q] += weight * right[q];
        }
      }
      UNROLL for (int r = 0; r < rows; ++r)
        UNROLL for (int q = 0; q < TILE; ++q) {
          const int64_t place = (t + r) * dim + k + q;
          by_decoder[place] = one[r][q] * share[t + r], back[place] = other[r][q] * share[t + r];
        }
    }
  });
}

// X^T Y.
template <typename T>
void pulled(int64_t tokens, int64_t dim, const Vector<T>* x, const Vector<T>* y, Vector<T>* found) {
  for (int64_t i = 0; i < dim; i += TILE)
    for (int64_t j = 0; j < dim; j += TILE) {
      Vector<T> sum[TILE][TILE] = {};
      for (int64_t t = 0; t < tokens; ++t) {
        Vector<T> right[TILE];
        UNROLL for (int q = 0; q < TILE; ++q) right[q] = held<T>(y[t * dim + j + q]);
        UNROLL for (int r = 0; r < TILE; ++r) {
          const Vector<T> left = held<T>(x[t * dim + i + r]);
          UNROLL for (int q = 0; q < TILE; ++q) sum[r][q] += left * right[q];
        }
      }
      UNROLL for (int r = 0; r < TILE; ++r)
        UNROLL for (int q = 0; q < TILE; ++q) found[(i + r) * dim + j + q] = sum[r][q];
    }
}

// The output of a head, and its gradient: A X in the decoder and sum_t x_t sum_s A_ts (v_ts - p_t) x_s in the attention.
// `scratch` has room for 2 (tokens + dim + 1) registers a token.
template <typename T>
Vector<T> head(int64_t tokens, int64_t dim, const Vector<T>* x, const T* decoder, const T* attention, Vector<T>* scratch,
               Vector<T>* by_decoder, Vector<T>* by_attention) {
  Vector<T> *ask = scratch, *back = ask + tokens * dim, *score = back + tokens * dim, *value = score + tokens * tokens;
  Vector<T> *share = value + tokens * tokens, *part = share + tokens, output = {};
  asked<T>(tokens, dim, x, attention, ask);
  scores<T>(tokens, dim, x, ask, decoder, score, value);
  for (int64_t t = 0; t < tokens; ++t) {
    attended<T>(tokens, score + t * tokens, value + t * tokens, share[t], part[t]);
    output += part[t];
  }
  mixed<T>(tokens, dim, x, score, value, share, part, by_decoder, back);
  pulled<T>(tokens, dim, x, back, by_attention);
  return output;
}

// log(1 + e^-m), and 1 / (1 + e^m) in the place of m.
template <typename T>
inline Vector<T> loss_of(Vector<T>& margin) {
  const auto right = margin > Vector<T>{};
  const Vector<T> small = exp_below<T>(right ? -margin : margin);
  const Vector<T> wrong = right ? Vector<T>{} : -margin;
  margin = (right ? small : all<T>(1)) / (small + T(1));
  return wrong + log_one_plus<T>(small);
}

// Rows of `columns` numbers one after another, with zeros in between where rows of `to` are longer.
template <typename T>
void widen(const T* from, int64_t rows, int64_t columns, int64_t longer, T* to) {
  for (int64_t r = 0; r < rows; ++r) std::copy(from + r * columns, from + (r + 1) * columns, to + r * longer);
}

// One run.
template <typename T>
struct Run {
  const T *decoder, *attention, *members, *scale, *inputs, *labels;
  T *loss, *by_decoder, *by_attention;

  void slope(int64_t groups, int64_t samples, int64_t tokens, int64_t own_dim) const {
    using V = Vector<T>;
    const int64_t dim = rounded_up(own_dim, TILE), length = tokens * dim, each = length + dim * dim;
    Zeros<V> x(length), label(1), scratch(2 * tokens * (tokens + dim + 1)), own(groups * each), found(groups * each);
    Zeros<T> wide_decoder(groups * length), wide_attention(groups * dim * dim);
    widen<T>(decoder, groups * tokens, own_dim, dim, wide_decoder);
    for (int64_t g = 0; g < groups; ++g)
      widen<T>(attention + g * own_dim * own_dim, own_dim, own_dim, dim, wide_attention + g * dim * dim);
    T lost = 0;
    for (int64_t n = 0; n < samples; n += WIDTH<T>) {
      const int64_t count = std::min(WIDTH<T>, samples - n);
      turn(n, count, tokens, own_dim, dim, x, label);
      V output = {};
      for (int64_t g = 0; g < groups; ++g) {
        V* here = own + g * each;
        output += members[g] * head<T>(tokens, dim, x, wide_decoder + g * length, wide_attention + g * dim * dim, scratch,
                                       here, here + length);
      }
      V margin = label[0] * *scale * output;
      const V losses = loss_of<T>(margin);
      for (int64_t q = 0; q < count; ++q) lost += losses[q];
      const V weight = -label[0] * (*scale / T(samples)) * margin;
      for (int64_t k = 0; k < groups * each; ++k) found[k] += weight * own[k];
    }
    *loss = lost / T(samples);
    for (int64_t g = 0; g < groups; ++g) {
      add_up(found + g * each, tokens, own_dim, dim, by_decoder + g * tokens * own_dim);
      add_up(found + g * each + length, own_dim, own_dim, dim, by_attention + g * own_dim * own_dim);
    }
  }

  // Some samples, one register a number; where there are too few, tokens and labels are 0.
  void turn(int64_t begin, int64_t count, int64_t tokens, int64_t own_dim, int64_t dim, Vector<T>* x, Vector<T>* label) const {
    constexpr int64_t W = WIDTH<T>;
    const int64_t length = tokens * own_dim;
    const T* from = inputs + begin * length;
    T *to = reinterpret_cast<T*>(x), *y = reinterpret_cast<T*>(label);
    for (int64_t q = 0; q < W; ++q) y[q] = q < count ? labels[begin + q] : T(0);
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t k = 0; k < own_dim; ++k) {
        const T* here = from + t * own_dim + k;
        T* there = to + (t * dim + k) * W;
        if (count == W)
          UNROLL for (int64_t q = 0; q < W; ++q) there[q] = here[q * length];
        else
          for (int64_t q = 0; q < W; ++q) there[q] = q < count ? here[q * length] : T(0);
      }
  }

  static void add_up(const Vector<T>* from, int64_t rows, int64_t columns, int64_t longer, T* to) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t k = 0; k < columns; ++k) to[r * columns + k] = sum_of<T>(from[r * longer + k]);
  }
};

// Given: decoder (group, token, dim); attention (group, dim, dim); members (group); scale; tokens (sample, token, dim); labels
// (sample). Found: loss, its gradient in decoder and attention. All of them may have runs as first dimensions.
template <typename T>
void slope(Call call) {
  const int64_t samples = call.last(4, 3), tokens = call.last(4, 2), dim = call.last(4, 1);
  const int64_t groups = call.last(2, 1), runs = call.count_found(0);
  const int64_t length = tokens * dim, square = dim * dim;
  for (int64_t r = 0; r < runs; ++r) {
    const Run<T> run{call.given<T>(0) + r * groups * length, call.given<T>(1) + r * groups * square,
                     call.given<T>(2) + r * groups,          call.given<T>(3) + r,
                     call.given<T>(4) + r * samples * length, call.given<T>(5) + r * samples,
                     call.found<T>(0) + r,                    call.found<T>(1) + r * groups * length,
                     call.found<T>(2) + r * groups * square};
    run.slope(groups, samples, tokens, dim);
  }
}

KERNEL(heads_slope,
        "decoder T[group token dim], attention T[group dim dim], members T[group], scale T[], tokens T[sample token dim], "
        "labels T[sample] "
        "-> loss T[], decoder T[group token dim], attention T[group dim dim]",
        slope)
