// One step of the row form and what is seen after it: `advanced_in_jax` of `simulators`, which says what is computed.
//
// What a step moves falls apart into columns: those of Q and K at the same place feed each other. A vector of columns is fed,
// multiplied with the Gram matrix and added while all of it lies in the nearest cache; attention is then looked at by rows.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "elementary.h"
#include "row_products.h"
#include "kernel.h"
#include "vectors.h"

constexpr int ROWS = BYTES == 64 ? 8 : 6;  // of pairs of vectors that a product keeps in registers

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

// Attention of one sample and the mean value that each query sees, as many queries at once as a vector has numbers; gives the
// output. All have room for whole vectors, and logits that are not there get no attention.
template <typename T>
T attend(const T* logits, const T* values, int64_t tokens, T* attention, T* seen) {
  constexpr int64_t W = WIDTH<T>;
  const int64_t stride = rounded_up(tokens, W);
  T total = 0;
  for (int64_t i = 0; i < tokens; i += W) {
    const int64_t count = std::min(W, tokens - i);
    T* rows = attention + i * stride;
    Vector<T> top[W] = {}, sum[W] = {}, mean[W] = {};
    for (int64_t r = 0; r < count; ++r) {
      T* row = rows + r * stride;
      at(row + stride - W) = Vector<T>{} - T(__builtin_inf());
      std::memcpy(row, logits + (i + r) * tokens, tokens * sizeof(T));
      top[r] = at(row);
      for (int64_t j = W; j < stride; j += W) top[r] = at(row + j) > top[r] ? at(row + j) : top[r];
    }
    const Vector<T> most = largest_of<T>(top);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t j = 0; j < stride; j += W) {
        const Vector<T> weight = exp_below<T>(at(rows + r * stride + j) - most[r]);
        sum[r] += weight, mean[r] += weight * at(values + j);
        at(rows + r * stride + j) = weight;
      }
    const Vector<T> share = T(1) / sums_of<T>(sum);
    at(seen + i) = share * sums_of<T>(mean);
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t j = 0; j < stride; j += W) at(rows + r * stride + j) *= share[r];
      total += seen[i + r];
    }
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

// The values of all tokens, each sample in whole vectors.
template <typename T>
Zeros<T> token_values(const T* value, const int64_t* rows, const Sizes& size) {
  const int64_t stride = rounded_up(size.tokens, WIDTH<T>);
  Zeros<T> values(size.samples * stride);
  for (int64_t n = 0; n < size.samples; ++n)
    for (int64_t i = 0; i < size.tokens; ++i) values[n * stride + i] = value[rows[n * size.tokens + i]];
  return values;
}

template <typename T>
void look(const T* labels, const T* query, const T* key, const T* value, const Sizes& size, const Seen<T>& seen) {
  const int64_t tokens = size.tokens, basis = size.basis, stride = rounded_up(tokens, WIDTH<T>), square = tokens * tokens;
  const std::vector<int64_t> rows = token_rows(labels, size);
  const Tail<T> tail(basis);
  Zeros<T> attention(stride * stride), mean(stride), values = token_values<T>(value, rows.data(), size);
  std::vector<const T*> queries(tokens), keys(tokens);
  for (int64_t n = 0; n < size.samples; ++n) {
    for (int64_t i = 0; i < tokens; ++i) {
      const int64_t row = rows[n * tokens + i] * basis;
      queries[i] = query + row, keys[i] = key + row;
      seen.values[n * tokens + i] = values[n * stride + i];
    }
    inner_products<T>(queries.data(), keys.data(), tokens, tail, seen.logits + n * square);
    seen.outputs[n] = attend<T>(seen.logits + n * square, values + n * stride, tokens, attention, mean);
  }
  inner_products<T>(query, basis, query, basis, size.features, tail, seen.query_norms);
  inner_products<T>(key, basis, key, basis, size.features, tail, seen.key_norms);
}

template <typename T>
void move(const T* gram, const T* labels, T rate, T value_rate, const T* logits, const Sizes& size, const Moved<T>& run) {
  constexpr int64_t W = WIDTH<T>;
  const int64_t tokens = size.tokens, features = size.features, stride = rounded_up(tokens, W), square = tokens * tokens;
  const std::vector<int64_t> rows = token_rows(labels, size);
  Zeros<T> attention(stride * stride), mean(stride), attended(stride), values = token_values<T>(run.value, rows.data(), size);
  Zeros<T> centred(size.samples * square), turned(size.samples * square);
  Zeros<T> fed(features), moved(features), panel(2 * features * W);
  for (int64_t n = 0; n < size.samples; ++n) {
    driven<T>(logits + n * square, values + n * stride, labels[n], rate, value_rate, size, attention, mean,
              centred + n * square, turned + n * square, attended);
    for (int64_t i = 0; i < tokens; ++i) fed[rows[n * tokens + i]] += attended[i];
  }
  inner_products<T>(gram, features, fed, 0, features, Tail<T>(features), moved);
  for (int64_t p = 0; p < features; ++p) run.value[p] += moved[p], run.fed_value[p] += fed[p];

  const Tail<T> tail(size.basis);
  for (int64_t place = 0; place < tail.whole; place += W)
    move_columns<T>(place, Vector<T>{} + T(1), gram, centred, turned, rows.data(), size, run, panel);
  if (tail.rest) move_columns<T>(size.basis - W, tail.kept, gram, centred, turned, rows.data(), size, run, panel);
}

// Rows that are shorter than a vector get zeros behind them and are moved as copies.
template <typename T>
void move_narrow(const T* gram, const T* labels, T rate, T value_rate, const T* logits, const Sizes& size,
                 const Moved<T>& run) {
  T* const narrow[] = {run.query, run.key, run.fed_query, run.fed_key};
  std::vector<T> wide[4];
  const auto each_row = [&](auto copy) {
    for (int m = 0; m < 4; ++m)
      for (int64_t p = 0; p < size.features; ++p) copy(narrow[m] + p * size.basis, wide[m].data() + p * WIDTH<T>);
  };
  for (auto& matrix : wide) matrix.resize(size.features * WIDTH<T>);
  each_row([&](const T* row, T* copy) { std::memcpy(copy, row, size.basis * sizeof(T)); });
  const Moved<T> copy = {wide[0].data(), wide[1].data(), run.value, wide[2].data(), wide[3].data(), run.fed_value};
  move<T>(gram, labels, rate, value_rate, logits, {size.samples, size.tokens, size.features, WIDTH<T>}, copy);
  each_row([&](T* row, const T* copy) { std::memcpy(row, copy, size.basis * sizeof(T)); });
}

// Of several runs, one after another. Given: labels, query, key, value. Found: logits, values, norms of queries and keys, outputs.
template <typename T>
void seen_of(Call call) {
  const Sizes size = {call.last_found(0, 3), call.last_found(0, 1), call.last(1, 2), call.last(1, 1)};
  const int64_t P = size.features, N = size.samples, M = size.tokens, runs = call.count_given(3) / P;
  for (int64_t n = 0; n < runs; ++n) {
    const auto of = [=](int place, int64_t each) { return call.given<T>(place) + n * each; };
    const auto to = [=](int place, int64_t each) { return call.found<T>(place) + n * each; };
    look<T>(of(0, N), of(1, P * size.basis), of(2, P * size.basis), of(3, P), size,
            {to(0, N * M * M), to(1, N * M), to(2, P), to(3, P), to(4, N)});
  }
}

// Given: gram, labels, step sizes (of queries and keys, of values), logits; then what is moved, where it lies. Found: query, key,
// value, and what was fed to each.
template <typename T>
void moved_by(Call call) {
  const Sizes size = {call.last(3, 3), call.last(3, 1), call.last_found(0, 2), call.last_found(0, 1)};
  const int64_t P = size.features, N = size.samples, M = size.tokens, rows = P * size.basis;
  const int64_t runs = call.count_given(0) / (P * P);
  for (int64_t n = 0; n < runs; ++n) {
    const auto of = [=](int place, int64_t each) { return call.given<T>(place) + n * each; };
    const auto to = [=](int place, int64_t each) { return call.found<T>(place) + n * each; };
    const Moved<T> run = {to(0, rows), to(1, rows), to(2, P), to(3, rows), to(4, rows), to(5, P)};
    const T* rate = of(2, 2);
    (size.basis < WIDTH<T> ? move_narrow<T> : move<T>)(of(0, P * P), of(1, N), rate[0], rate[1], of(3, N * M * M), size, run);
  }
}

KERNEL(rows_seen,
        "labels T[sample], query T[feature basis], key T[feature basis], value T[feature] "
        "-> logits T[sample token token], values T[sample token], query_norms T[feature], key_norms T[feature], "
        "outputs T[sample] "
        "where token == (feature - 2) // sample + 1, feature == 2 + sample * (token - 1)",
        seen_of)
KERNEL(rows_moved,
        "gram T[feature feature], labels T[sample], rates T[2], logits T[sample token token], query T[feature basis], "
        "key T[feature basis], value T[feature], fed_query T[feature basis], fed_key T[feature basis], fed_value T[feature] "
        "-> query T[feature basis], key T[feature basis], value T[feature], fed_query T[feature basis], "
        "fed_key T[feature basis], fed_value T[feature] "
        "where feature == 2 + sample * (token - 1)",
        moved_by)
