// One step of the row form: `advanced_in_jax` of `simulators`, which says what is computed.
//
// What a step moves falls apart into columns: those of Q and K at the same place feed each other. A vector of columns is fed,
// multiplied with the Gram matrix and added while all of it lies in the nearest cache; attention is then looked at by rows.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "elementary.h"
#include "products.h"
#include "vectors.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

constexpr int ROWS = BYTES == 64 ? 8 : 4;  // of pairs of vectors that a product keeps in registers

struct Sizes {
  int64_t samples, tokens, features, basis;
};

// What a run holds and a step moves: matrices of `basis` columns and their values.
template <typename T>
struct Moved {
  T *query, *key, *value, *fed_query, *fed_key, *fed_value;
};

// The rows of all tokens: every sample has the signal of its label first, then its own noise.
template <typename T>
std::vector<int64_t> token_rows(const T* labels, const Sizes& size) {
  std::vector<int64_t> rows(size.samples * size.tokens);
  for (int64_t n = 0, noise = 2; n < size.samples; ++n) {
    rows[n * size.tokens] = labels[n] > 0 ? 0 : 1;
    for (int64_t i = 1; i < size.tokens; ++i) rows[n * size.tokens + i] = noise++;
  }
  return rows;
}

// Attention of one sample and the mean value that each query sees; gives the output.
template <typename T>
T attend(const T* logits, const T* values, int64_t tokens, T* attention, T* seen) {
  const int64_t stride = rounded_up(tokens, WIDTH<T>);
  T total = 0;
  for (int64_t i = 0; i < tokens; ++i) {
    T* row = attention + i * stride;
    const T most = *std::max_element(logits + i * tokens, logits + (i + 1) * tokens);
    std::fill(row + tokens, row + stride, -T(__builtin_inf()));
    for (int64_t j = 0; j < tokens; ++j) row[j] = logits[i * tokens + j] - most;
    Vector<T> sum = {}, mean = {};
    for (int64_t j = 0; j < stride; j += WIDTH<T>) {
      at(row + j) = exponential<T>(at(row + j));
      sum += at(row + j), mean += at(row + j) * at(values + j);
    }
    const T share = 1 / sum_of<T>(sum);
    for (int64_t j = 0; j < stride; j += WIDTH<T>) at(row + j) *= share;
    seen[i] = share * sum_of<T>(mean);
    total += seen[i];
  }
  return total / T(tokens);
}

// S of one sample and its transpose, and what the values are fed: `drive`, times the step sizes.
template <typename T>
void driven(const T* logits, const T* values, T label, T rate, T value_rate, const Sizes& size, T* attention, T* seen,
            T* centred, T* turned, T* attended) {
  const int64_t tokens = size.tokens, stride = rounded_up(tokens, WIDTH<T>);
  const T output = attend<T>(logits, values, tokens, attention, seen);
  const T weight = label / (1 + std::exp(label * output)) / T(size.samples * tokens);
  std::fill(attended, attended + stride, T(0));
  for (int64_t i = 0; i < tokens; ++i) {
    T* row = attention + i * stride;
    for (int64_t j = 0; j < stride; j += WIDTH<T>) {
      at(attended + j) += value_rate * weight * at(row + j);
      at(row + j) *= rate * weight * (at(values + j) - seen[i]);
    }
    for (int64_t j = 0; j < tokens; ++j) centred[i * tokens + j] = turned[j * tokens + i] = row[j];
  }
}

// The columns from `place` on: `panel` holds what their rows of Q and K are fed, of which `kept` counts, and is what moves all.
template <typename T>
void move_columns(int64_t place, Vector<T> kept, const T* gram, const T* centred, const T* turned, const int64_t* rows,
                  const Sizes& size, const Moved<T>& run, T* panel) {
  constexpr int64_t W = WIDTH<T>;
  const int64_t basis = size.basis, tokens = size.tokens;
  T *query = run.query + place, *key = run.key + place, *fed_query = run.fed_query + place, *fed_key = run.fed_key + place;
  std::fill(panel, panel + 4 * W, T(0));  // signals, to which many samples add
  for (int64_t n = 0; n < size.samples; ++n) {
    const int64_t* own = rows + n * tokens;
    in_blocks<ROWS>(tokens, [&](int64_t i, auto block) {
      constexpr int COUNT = decltype(block)::value;
      const T *s = centred + (n * tokens + i) * tokens, *t = turned + (n * tokens + i) * tokens;
      Vector<T> sum[COUNT][2] = {};
      for (int64_t j = 0; j < tokens; ++j) {
        const Vector<T> k = at(key + own[j] * basis), q = at(query + own[j] * basis);
        UNROLL for (int r = 0; r < COUNT; ++r) sum[r][0] += s[r * tokens + j] * k, sum[r][1] += t[r * tokens + j] * q;
      }
      UNROLL for (int r = 0; r < COUNT; ++r) {
        T* to = panel + own[i + r] * 2 * W;
        const bool signal = i + r == 0;
        at(to) = sum[r][0] * kept + (signal ? at(to) : Vector<T>{});
        at(to + W) = sum[r][1] * kept + (signal ? at(to + W) : Vector<T>{});
      }
    });
  }
  for (int64_t p = 0; p < size.features; ++p)
    at(fed_query + p * basis) += at(panel + p * 2 * W), at(fed_key + p * basis) += at(panel + p * 2 * W + W);
  in_blocks<ROWS>(size.features, [&](int64_t p, auto block) {
    constexpr int COUNT = decltype(block)::value;
    const T* left = gram + p * size.features;
    Vector<T> sum[COUNT][2] = {};
    for (int64_t k = 0; k < size.features; ++k) {
      const Vector<T> one = at(panel + k * 2 * W), two = at(panel + k * 2 * W + W);
      UNROLL for (int r = 0; r < COUNT; ++r) {
        const T factor = left[r * size.features + k];
        sum[r][0] += factor * one, sum[r][1] += factor * two;
      }
    }
    UNROLL for (int r = 0; r < COUNT; ++r)
      at(query + (p + r) * basis) += sum[r][0], at(key + (p + r) * basis) += sum[r][1];
  });
}

// What is seen of a run: `View`.
template <typename T>
struct Seen {
  T *logits, *values, *query_norms, *key_norms, *outputs;
};

template <typename T>
void advance(const T* gram, const T* labels, T rate, T value_rate, const T* logits, const Sizes& size, const Moved<T>& run,
             const Seen<T>& seen) {
  constexpr int64_t W = WIDTH<T>;
  const int64_t samples = size.samples, tokens = size.tokens, features = size.features, basis = size.basis;
  const int64_t stride = rounded_up(tokens, W), square = tokens * tokens;
  const std::vector<int64_t> rows = token_rows(labels, size);
  Zeros<T> attention(tokens * stride), mean(tokens), values(samples * stride), attended(stride);
  Zeros<T> centred(samples * square), turned(samples * square), fed(features), moved(features), panel(2 * features * W);
  const auto gather_values = [&] {
    for (int64_t n = 0; n < samples; ++n)
      for (int64_t i = 0; i < tokens; ++i) values[n * stride + i] = run.value[rows[n * tokens + i]];
  };

  gather_values();
  for (int64_t n = 0; n < samples; ++n) {
    driven<T>(logits + n * square, values + n * stride, labels[n], rate, value_rate, size, attention, mean,
              centred + n * square, turned + n * square, attended);
    for (int64_t i = 0; i < tokens; ++i) fed[rows[n * tokens + i]] += attended[i];
  }
  inner_products<T>(gram, features, fed, 0, features, Tail<T>(features), moved);
  for (int64_t p = 0; p < features; ++p) run.value[p] += moved[p], run.fed_value[p] += fed[p];

  const Tail<T> tail(basis);
  for (int64_t place = 0; place < tail.whole; place += W)
    move_columns<T>(place, Vector<T>{} + T(1), gram, centred, turned, rows.data(), size, run, panel);
  if (tail.rest) move_columns<T>(basis - W, tail.kept, gram, centred, turned, rows.data(), size, run, panel);

  gather_values();
  std::vector<const T*> queries(tokens), keys(tokens);
  for (int64_t n = 0; n < samples; ++n) {
    for (int64_t i = 0; i < tokens; ++i) {
      const int64_t row = rows[n * tokens + i] * basis;
      queries[i] = run.query + row, keys[i] = run.key + row;
      seen.values[n * tokens + i] = values[n * stride + i];
    }
    inner_products<T>(queries.data(), keys.data(), tokens, tail, seen.logits + n * square);
    seen.outputs[n] = attend<T>(seen.logits + n * square, values + n * stride, tokens, attention, mean);
  }
  inner_products<T>(run.query, basis, run.query, basis, features, tail, seen.query_norms);
  inner_products<T>(run.key, basis, run.key, basis, features, tail, seen.key_norms);
}

// Columns of zeros behind those of a matrix: rows are moved by whole vectors.
template <typename T>
std::vector<T> widened(const T* from, const Sizes& size) {
  std::vector<T> wide(size.features * WIDTH<T>);
  for (int64_t p = 0; p < size.features; ++p)
    std::memcpy(wide.data() + p * WIDTH<T>, from + p * size.basis, size.basis * sizeof(T));
  return wide;
}

template <typename T>
void advance_narrow(const T* gram, const T* labels, T rate, T value_rate, const T* logits, const Sizes& size,
                    const Moved<T>& run, const Seen<T>& seen) {
  T* const narrow[] = {run.query, run.key, run.fed_query, run.fed_key};
  std::vector<T> wide[4];
  for (int m = 0; m < 4; ++m) wide[m] = widened<T>(narrow[m], size);
  const Moved<T> copy = {wide[0].data(), wide[1].data(), run.value, wide[2].data(), wide[3].data(), run.fed_value};
  advance<T>(gram, labels, rate, value_rate, logits, {size.samples, size.tokens, size.features, WIDTH<T>}, copy, seen);
  for (int m = 0; m < 4; ++m)
    for (int64_t p = 0; p < size.features; ++p)
      std::memcpy(narrow[m] + p * size.basis, wide[m].data() + p * WIDTH<T>, size.basis * sizeof(T));
}

// Several runs, one after another.
template <ffi::DataType KIND>
ffi::Error advanced(ffi::Buffer<KIND> gram, ffi::Buffer<KIND> labels, ffi::Buffer<KIND> rates, ffi::Buffer<KIND> logits,
                    ffi::RemainingArgs, ffi::ResultBuffer<KIND> query, ffi::ResultBuffer<KIND> key,
                    ffi::ResultBuffer<KIND> value, ffi::ResultBuffer<KIND> fed_query, ffi::ResultBuffer<KIND> fed_key,
                    ffi::ResultBuffer<KIND> fed_value, ffi::ResultBuffer<KIND> new_logits, ffi::ResultBuffer<KIND> values,
                    ffi::ResultBuffer<KIND> query_norms, ffi::ResultBuffer<KIND> key_norms,
                    ffi::ResultBuffer<KIND> outputs) {
  using T = ffi::NativeType<KIND>;
  const auto shape = logits.dimensions(), matrix = query->dimensions();
  const size_t rank = shape.size();
  const Sizes size = {shape[rank - 3], shape[rank - 1], matrix[rank - 3], matrix[rank - 2]};
  const int64_t P = size.features, N = size.samples, M = size.tokens, runs = gram.element_count() / (P * P);
  for (int64_t n = 0; n < runs; ++n) {
    const auto of = [n](auto& buffer, int64_t each) { return buffer.typed_data() + n * each; };
    const int64_t rows = P * size.basis;
    const Moved<T> run = {of(*query, rows),     of(*key, rows),     of(*value, P),
                          of(*fed_query, rows), of(*fed_key, rows), of(*fed_value, P)};
    const Seen<T> seen = {of(*new_logits, N * M * M), of(*values, N * M), of(*query_norms, P), of(*key_norms, P),
                          of(*outputs, N)};
    const T* rate = of(rates, 2);
    const auto step = size.basis < WIDTH<T> ? advance_narrow<T> : advance<T>;
    step(of(gram, P * P), of(labels, N), rate[0], rate[1], of(logits, N * M * M), size, run, seen);
  }
  return ffi::Error::Success();
}

#define HANDLER(name, kind)                                                                                    \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, advanced<kind>,                                                          \
                                ffi::Ffi::Bind()                                                               \
                                    .Arg<ffi::Buffer<kind>>() /* gram */                                       \
                                    .Arg<ffi::Buffer<kind>>() /* labels */                                     \
                                    .Arg<ffi::Buffer<kind>>() /* step sizes: of queries and keys, of values */ \
                                    .Arg<ffi::Buffer<kind>>() /* logits */                                     \
                                    .RemainingArgs() /* what is moved, where it lies */                        \
                                    .Ret<ffi::Buffer<kind>>() /* query */                                      \
                                    .Ret<ffi::Buffer<kind>>() /* key */                                        \
                                    .Ret<ffi::Buffer<kind>>() /* value */                                      \
                                    .Ret<ffi::Buffer<kind>>() /* fed_query */                                  \
                                    .Ret<ffi::Buffer<kind>>() /* fed_key */                                    \
                                    .Ret<ffi::Buffer<kind>>() /* fed_value */                                  \
                                    .Ret<ffi::Buffer<kind>>() /* logits */                                     \
                                    .Ret<ffi::Buffer<kind>>() /* values */                                     \
                                    .Ret<ffi::Buffer<kind>>() /* query_norms */                                \
                                    .Ret<ffi::Buffer<kind>>() /* key_norms */                                  \
                                    .Ret<ffi::Buffer<kind>>() /* outputs */)
HANDLER(rows_float32, ffi::F32);
HANDLER(rows_float64, ffi::F64);
