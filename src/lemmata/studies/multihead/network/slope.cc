// Loss and gradient of heads in one pass over the samples: `slope_by_sums` of this package, which says what is computed.
//
// A register holds one number of several samples, so that the short sums over tokens and coordinates stay in registers
// and a sample is read once: what its queries contribute to the gradient is known but for one factor, the slope of the loss.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "elementary.h"
#include "vectors.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

constexpr int TILE = BYTES == 64 ? 4 : 2;  // rows or columns whose sums are kept in registers together

// `work(begin, size)` for all parts of a range, whose sizes are constants.
template <int SIZE = TILE, typename Work>
inline void in_tiles(int64_t begin, int64_t end, Work work) {
  for (; begin + SIZE <= end; begin += SIZE) work(begin, std::integral_constant<int, SIZE>{});
  if constexpr (SIZE > 1) in_tiles<SIZE / 2>(begin, end, work);
}

// Some samples, one register a number; `x` has the tokens X of all of them (token, dim).
template <typename T>
struct Samples {
  using V = Vector<T>;
  int64_t tokens, dim;
  const V* x;

  // X W.
  void asked(const T* weights, V* found) const {
    in_tiles(0, tokens, [&](int64_t t, auto some) {
      constexpr int rows = some;
      in_tiles(0, dim, [&](int64_t j, auto columns) {
        V sum[rows][columns] = {};
        for (int64_t i = 0; i < dim; ++i)
          UNROLL for (int r = 0; r < rows; ++r)
            UNROLL for (int q = 0; q < columns; ++q) sum[r][q] += x[(t + r) * dim + i] * weights[i * dim + j + q];
        UNROLL for (int r = 0; r < rows; ++r)
          UNROLL for (int q = 0; q < columns; ++q) found[(t + r) * dim + j + q] = sum[r][q];
      });
    });
  }

  // The scores of a query, <asked, x_s>, and its values v_s = <U_t, x_s>; returns the largest score.
  V scores(const V* asked, const T* decoder, V* score, V* value) const {
    V largest = all<T>(-std::numeric_limits<T>::infinity());
    in_tiles(0, tokens, [&](int64_t s, auto some) {
      V one[some] = {}, other[some] = {};
      for (int64_t k = 0; k < dim; ++k)
        UNROLL for (int q = 0; q < some; ++q) {
          const V here = x[(s + q) * dim + k];
          one[q] += asked[k] * here, other[q] += decoder[k] * here;
        }
      UNROLL for (int q = 0; q < some; ++q) {
        score[s + q] = one[q], value[s + q] = other[q];
        largest = one[q] > largest ? one[q] : largest;
      }
    });
    return largest;
  }

  // sum_s a_s x_s and sum_s b_s x_s.
  void mixed(const V* a, const V* b, V* by_a, V* by_b) const {
    in_tiles(0, dim, [&](int64_t k, auto some) {
      V one[some] = {}, other[some] = {};
      for (int64_t s = 0; s < tokens; ++s)
        UNROLL for (int q = 0; q < some; ++q) {
          const V here = x[s * dim + k + q];
          one[q] += a[s] * here, other[q] += b[s] * here;
        }
      UNROLL for (int q = 0; q < some; ++q) by_a[k + q] = one[q], by_b[k + q] = other[q];
    });
  }

  // X^T Y.
  void pulled(const V* y, V* found) const {
    in_tiles(0, dim, [&](int64_t i, auto some) {
      constexpr int rows = some;
      in_tiles(0, dim, [&](int64_t j, auto columns) {
        V sum[rows][columns] = {};
        for (int64_t t = 0; t < tokens; ++t)
          UNROLL for (int r = 0; r < rows; ++r)
            UNROLL for (int q = 0; q < columns; ++q) sum[r][q] += x[t * dim + i + r] * y[t * dim + j + q];
        UNROLL for (int r = 0; r < rows; ++r)
          UNROLL for (int q = 0; q < columns; ++q) found[(i + r) * dim + j + q] = sum[r][q];
      });
    });
  }

  // The output of a head, and its gradient: A X in the decoder and sum_t x_t sum_s A_ts (v_ts - p_t) x_s in the attention.
  // `scratch` has room for 2 dim + 2 registers a token.
  V head(const T* decoder, const T* attention, V* scratch, V* by_decoder, V* by_attention) const {
    V *ask = scratch, *back = ask + tokens * dim, *score = back + tokens * dim, *value = score + tokens;
    V output = {};
    asked(attention, ask);
    for (int64_t t = 0; t < tokens; ++t) {
      const V largest = scores(ask + t * dim, decoder + t * dim, score, value);
      V whole = {}, part = {};
      in_tiles(0, tokens, [&](int64_t s, auto some) {
        V raw[some];
        UNROLL for (int q = 0; q < some; ++q) raw[q] = exp_below<T>(score[s + q] - largest);
        UNROLL for (int q = 0; q < some; ++q)
          score[s + q] = raw[q], whole += raw[q], part += raw[q] * value[s + q];
      });
      const V share = T(1) / whole;
      part *= share, output += part;
      for (int64_t s = 0; s < tokens; ++s) score[s] *= share, value[s] = score[s] * (value[s] - part);
      mixed(score, value, by_decoder + t * dim, back + t * dim);
    }
    pulled(back, by_attention);
    return output;
  }
};

// log(1 + e^-m), and 1 / (1 + e^m) in the place of m.
template <typename T>
inline Vector<T> loss_of(Vector<T>& margin) {
  const auto right = margin > Vector<T>{};
  const Vector<T> small = exp_below<T>(right ? -margin : margin);
  const Vector<T> wrong = right ? Vector<T>{} : -margin;
  margin = (right ? small : all<T>(1)) / (small + T(1));
  return wrong + log_one_plus<T>(small);
}

// One run.
template <typename T>
struct Run {
  const T *decoder, *attention, *members, *scale, *inputs, *labels;
  T *loss, *by_decoder, *by_attention;

  void slope(int64_t groups, int64_t samples, int64_t tokens, int64_t dim) const {
    using V = Vector<T>;
    constexpr int64_t W = WIDTH<T>;
    const int64_t length = tokens * dim, square = dim * dim, each = length + square;
    Zeros<V> x(length), label(1), scratch(2 * (length + tokens)), own(groups * each), found(groups * each);
    T lost = 0;
    for (int64_t n = 0; n < samples; n += W) {
      const int64_t count = std::min(W, samples - n);
      turn(n, count, length, x, label);
      const Samples<T> some{tokens, dim, x};
      V output = {};
      for (int64_t g = 0; g < groups; ++g)
        output += members[g] * some.head(decoder + g * length, attention + g * square, scratch, own + g * each,
                                         own + g * each + length);
      V margin = label[0] * *scale * output;
      const V losses = loss_of<T>(margin);
      for (int64_t q = 0; q < count; ++q) lost += losses[q];
      const V weight = -label[0] * (*scale / T(samples)) * margin;
      for (int64_t k = 0; k < groups * each; ++k) found[k] += weight * own[k];
    }
    *loss = lost / T(samples);
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t k = 0; k < length; ++k) by_decoder[g * length + k] = sum_of<T>(found[g * each + k]);
      for (int64_t k = 0; k < square; ++k) by_attention[g * square + k] = sum_of<T>(found[g * each + length + k]);
    }
  }

  // Some samples, one register a number; where there are too few, tokens and labels are 0.
  void turn(int64_t begin, int64_t count, int64_t length, Vector<T>* x, Vector<T>* label) const {
    constexpr int64_t W = WIDTH<T>;
    T *to = reinterpret_cast<T*>(x), *y = reinterpret_cast<T*>(label);
    for (int64_t q = 0; q < W; ++q) {
      const T* from = inputs + (begin + q) * length;
      for (int64_t k = 0; k < length; ++k) to[k * W + q] = q < count ? from[k] : T(0);
      y[q] = q < count ? labels[begin + q] : T(0);
    }
  }
};

template <ffi::DataType KIND>
ffi::Error slope(ffi::Buffer<KIND> decoder, ffi::Buffer<KIND> attention, ffi::Buffer<KIND> members, ffi::Buffer<KIND> scale,
                 ffi::Buffer<KIND> inputs, ffi::Buffer<KIND> labels, ffi::ResultBuffer<KIND> loss,
                 ffi::ResultBuffer<KIND> by_decoder, ffi::ResultBuffer<KIND> by_attention) {
  using T = ffi::NativeType<KIND>;
  const auto shape = inputs.dimensions();
  const int64_t rank = shape.size(), samples = shape[rank - 3], tokens = shape[rank - 2], dim = shape[rank - 1];
  const int64_t groups = members.dimensions().back(), runs = loss->element_count();
  const int64_t length = tokens * dim, square = dim * dim;
  for (int64_t r = 0; r < runs; ++r) {
    const Run<T> run{decoder.typed_data() + r * groups * length, attention.typed_data() + r * groups * square,
                     members.typed_data() + r * groups,          scale.typed_data() + r,
                     inputs.typed_data() + r * samples * length, labels.typed_data() + r * samples,
                     loss->typed_data() + r,                     by_decoder->typed_data() + r * groups * length,
                     by_attention->typed_data() + r * groups * square};
    run.slope(groups, samples, tokens, dim);
  }
  return ffi::Error::Success();
}

#define HANDLER(name, kind)                                                                                   \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, slope<kind>,                                                            \
                                ffi::Ffi::Bind() /* all of them may have runs as first dimensions */          \
                                    .Arg<ffi::Buffer<kind>>() /* decoder: group, token, dim */                \
                                    .Arg<ffi::Buffer<kind>>() /* attention: group, dim, dim */                \
                                    .Arg<ffi::Buffer<kind>>() /* members: group */                            \
                                    .Arg<ffi::Buffer<kind>>() /* scale */                                     \
                                    .Arg<ffi::Buffer<kind>>() /* tokens: sample, token, dim */                \
                                    .Arg<ffi::Buffer<kind>>() /* labels: sample */                            \
                                    .Ret<ffi::Buffer<kind>>() /* loss */                                      \
                                    .Ret<ffi::Buffer<kind>>() /* gradient in the decoder */                   \
                                    .Ret<ffi::Buffer<kind>>() /* gradient in the attention */)
HANDLER(heads_slope_float32, ffi::F32);
HANDLER(heads_slope_float64, ffi::F64);
