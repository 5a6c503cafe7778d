// Loss and gradient on fresh prompts of shift tasks: `network.slope` on what `Chains.draw` makes of a key.
//
// Prompts lie side by side, one in each place of a register. A task is a cycle, along which every chain takes 1, 2, ... places:
// columns of one step that begin at the same place are equal, so that they are counted; and what belongs to patterns is kept in
// the order of the cycle, where a step is the same shift in all prompts.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "elementary.h"
#include "threefry.h"
#include "vectors.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

struct Sizes {
  int64_t prompts, examples, patterns, steps;

  int64_t rows() const { return 2 * patterns + steps; }
  int64_t columns() const { return patterns + steps; }
  int64_t around(int64_t place) const { return place < patterns ? place : place - patterns; }
  // Places from the beginning of a chain to its state before step k (from 0).
  int64_t walked(int64_t k) const { return k * (k + 1) / 2 % patterns; }
};

// Tasks and examples of prompts side by side.
struct Drawn {
  Sizes sizes;
  Zeros<Word> words, place, sums;   // place: of every pattern along the cycle
  Zeros<float> begun;               // how many examples begin at every place
  Row<Word> query;                  // the pattern of the query
  int64_t start[SIDE], step[SIDE];  // the place at which its chain begins, the step that is asked for

  explicit Drawn(const Sizes& s)
      : sizes(s), words(s.patterns * SIDE), place(s.patterns * SIDE), sums(s.examples * SIDE), begun(s.patterns * SIDE) {}

  // The prompts from `first` on, of whose examples `own` begin with the query's pattern.
  void draw(const Word* key, int64_t first, int64_t own) {
    const Keys keys = folded(key, first), others = part_of(keys, 1);
    draw_places(part_of(part_of(keys, 0), 1));
    draw_sums(part_of(others, 0), part_of(others, 1), own);
    for (int64_t p = 0; p < sizes.patterns; ++p) row<float>(begun, p) = Row<float>{};
    const Word span = sizes.patterns - 1;
    Row<Word> now;
    for (int64_t q = 0; q < SIDE; ++q) {
      const int64_t pattern = (first + q) / sizes.steps % sizes.patterns;
      step[q] = (first + q) % sizes.steps;
      start[q] = place[pattern * SIDE + q];
      now[q] = sizes.around(start[q] + sizes.walked(step[q]));
      begun[start[q] * SIDE + q] = own;
      for (int64_t n = own; n < sizes.examples; ++n) {
        const int64_t other = sizes.around(pattern + 1 + sums[n * SIDE + q] % span);
        begun[place[other * SIDE + q] * SIDE + q] += 1;
      }
    }
    query = Row<Word>{};
    for (int64_t i = 0; i < sizes.patterns; ++i) query += Word(i) & (Row<Word>)(row<Word>(place, i) == now);
  }

 private:
  // A place is the rank of a random word (`random_cycle`).
  void draw_places(const Keys& keys) {
    each_word(keys, 0, sizes.patterns,
              [this](int64_t n, const Vector<Word>& one, const Vector<Word>& two) { row<Word>(words, n) = one ^ two; });
    for (int64_t i = 0; i < sizes.patterns; ++i) {
      Row<Word> rank = Row<Word>{} + Word(sizes.patterns - 1 - i);
      const Row<Word> word = row<Word>(words, i);
      for (int64_t j = 0; j < i; ++j) {
        const Row<Word> earlier = (Row<Word>)(row<Word>(words, j) <= word);  // -1 where pattern j has the earlier place
        rank -= earlier, row<Word>(place, j) += earlier;
      }
      row<Word>(place, i) = rank;
    }
  }

  // `jax.random.randint(key, (examples,), 1, patterns)` is 1 and the rest of 128 random bits modulo M - 1. Here are numbers with
  // the same rest, small enough for a word, of all examples but the first.
  void draw_sums(const Keys& upper, const Keys& lower, int64_t first) {
    const int64_t span = sizes.patterns - 1;
    Word power[8];  // 2^(16 n) modulo M - 1
    int64_t rest = 1 % span;
    for (Word& one : power) one = rest, rest = (rest << 16) % span;
    const auto part = [&power](const Vector<Word>& word, int n) {
      return (word & 0xFFFF) * power[2 * n] + (word >> 16) * power[2 * n + 1];
    };
    each_word(upper, first, sizes.examples, [&](int64_t n, const Vector<Word>& one, const Vector<Word>& two) {
      row<Word>(sums, n) = part(one, 3) + part(two, 2);
    });
    each_word(lower, first, sizes.examples, [&](int64_t n, const Vector<Word>& one, const Vector<Word>& two) {
      row<Word>(sums, n) += part(one, 1) + part(two, 0);
    });
  }
};

// Loss and gradient of a table, added up over prompts side by side.
template <typename T>
class Layer {
  const Sizes sizes;
  const int64_t stride;
  Zeros<T> turned, found, line;  // the table and its gradient, rows and columns exchanged: a query asks for one row
  // By place: the parts of logits (then of their gradient) that belong to inputs and outputs of columns, and F - z.
  Zeros<T> top, bottom, miss;
  Zeros<T> often, share;  // by step and beginning: how many such columns there are, their attention
  Zeros<T> step;
  T loss = 0;

 public:
  Layer(const Sizes& s, const T* table)
      : sizes(s),
        stride(rounded_up(s.rows(), WIDTH<T>)),
        turned(s.columns() * stride),
        found(s.columns() * stride),
        line(stride),
        top(s.patterns * SIDE),
        bottom(s.patterns * SIDE),
        miss(s.patterns * SIDE),
        often(s.steps * s.patterns * SIDE),
        share(s.steps * s.patterns * SIDE),
        step(s.steps * SIDE) {
    for (int64_t r = 0; r < sizes.rows(); ++r)
      for (int64_t c = 0; c < sizes.columns(); ++c) turned[c * stride + r] = table[r * sizes.columns() + c];
  }

  // The first `count` of the prompts.
  void add(Drawn& drawn, int64_t count) {
    for (int64_t q = 0; q < count; ++q) look_up(drawn, q);
    attend(drawn, count);
    for (int64_t q = 0; q < count; ++q) pull_back(drawn, q);
  }

  void mean(T* mean_loss, T* gradient) {
    const T each = T(1) / sizes.prompts;
    *mean_loss = loss * each;
    for (int64_t r = 0; r < sizes.rows(); ++r)
      for (int64_t c = 0; c < sizes.columns(); ++c) gradient[r * sizes.columns() + c] = found[c * stride + r] * each;
  }

 private:
  // What the query of a prompt says to inputs, outputs and steps, and how often its columns are there: those of the examples,
  // and the earlier ones of its own chain.
  void look_up(Drawn& drawn, int64_t q) {
    const T *pattern = turned + drawn.query[q] * stride, *now = turned + (sizes.patterns + drawn.step[q]) * stride;
    for (int64_t r = 0; r < stride; r += WIDTH<T>) at(line + r) = at(pattern + r) + at(now + r);
    for (int64_t i = 0; i < sizes.patterns; ++i) {
      const int64_t place = drawn.place[i * SIDE + q];
      top[place * SIDE + q] = line[i], bottom[place * SIDE + q] = line[sizes.patterns + i];
    }
    for (int64_t k = 0; k < sizes.steps; ++k) step[k * SIDE + q] = line[2 * sizes.patterns + k];
  }

  // Calls `visit(column, input, output, k)` for all beginnings of all steps: places of a column and of its patterns.
  template <typename Visit>
  void each_column(Visit visit) const {
    for (int64_t k = 0; k < sizes.steps; ++k) {
      int64_t input = sizes.walked(k), output = sizes.around(input + (k + 1) % sizes.patterns);
      for (int64_t p = 0; p < sizes.patterns; ++p) {
        visit(k * sizes.patterns + p, input, output, k);
        input = sizes.around(input + 1), output = sizes.around(output + 1);
      }
    }
  }

  // Attention and loss; then the gradient in the logits, s_i ((F - z)_i - sum_r s_r (F - z)_r), added up for inputs, outputs
  // (which have (F - z)_i in common) and steps.
  void attend(Drawn& drawn, int64_t count) {
    constexpr T NEVER = -std::numeric_limits<T>::infinity();
    for (int64_t k = 0; k < sizes.steps; ++k)
      for (int64_t p = 0; p < sizes.patterns; ++p)
        row<T>(often, k * sizes.patterns + p) = __builtin_convertvector(row<float>(drawn.begun, p), Row<T>);
    for (int64_t q = 0; q < count; ++q)
      for (int64_t k = 0; k < drawn.step[q]; ++k) often[(k * sizes.patterns + drawn.start[q]) * SIDE + q] += 1;
    Row<T> most = Row<T>{} + NEVER, total = {}, common = {}, squares = {};
    each_column([&](int64_t column, int64_t input, int64_t output, int64_t k) {
      const Row<T> sum = row<T>(top, input) + row<T>(bottom, output) + row<T>(step, k);
      const Row<T> logit = row<T>(often, column) > 0 ? sum : Row<T>{} + NEVER;
      row<T>(share, column) = logit, most = logit > most ? logit : most;
    });
    for (int64_t p = 0; p < sizes.patterns; ++p) row<T>(miss, p) = Row<T>{};
    each_column([&](int64_t column, int64_t, int64_t output, int64_t) {
      const Row<T> weight = row<T>(often, column) * exponential<T>(row<T>(share, column) - most);
      row<T>(share, column) = weight, row<T>(miss, output) += weight, total += weight;
    });
    const Row<T> over = 1 / total;
    for (int64_t p = 0; p < sizes.patterns; ++p) row<T>(bottom, p) = row<T>(miss, p) *= over;
    for (int64_t q = 0; q < count; ++q)
      miss[sizes.around(drawn.start[q] + sizes.walked(drawn.step[q] + 1)) * SIDE + q] -= 1;
    for (int64_t p = 0; p < sizes.patterns; ++p) {
      const Row<T> own = row<T>(miss, p);
      common += row<T>(bottom, p) * own, squares += own * own;
    }
    for (int64_t q = 0; q < count; ++q) loss += squares[q] / 2;
    for (int64_t p = 0; p < sizes.patterns; ++p) {
      row<T>(miss, p) -= common, row<T>(bottom, p) *= row<T>(miss, p);
      row<T>(top, p) = Row<T>{};
    }
    for (int64_t k = 0; k < sizes.steps; ++k) row<T>(step, k) = Row<T>{};
    each_column([&](int64_t column, int64_t input, int64_t output, int64_t k) {
      const Row<T> pull = row<T>(share, column) * over * row<T>(miss, output);
      row<T>(top, input) += pull, row<T>(step, k) += pull;
    });
  }

  // To the rows of the table that the query asked for.
  void pull_back(Drawn& drawn, int64_t q) {
    for (int64_t i = 0; i < sizes.patterns; ++i) {
      const int64_t place = drawn.place[i * SIDE + q];
      line[i] = top[place * SIDE + q], line[sizes.patterns + i] = bottom[place * SIDE + q];
    }
    for (int64_t k = 0; k < sizes.steps; ++k) line[2 * sizes.patterns + k] = step[k * SIDE + q];
    T *pattern = found + drawn.query[q] * stride, *now = found + (sizes.patterns + drawn.step[q]) * stride;
    for (int64_t r = 0; r < stride; r += WIDTH<T>) at(pattern + r) += at(line + r), at(now + r) += at(line + r);
  }
};

template <ffi::DataType KIND>
ffi::Error fresh(ffi::Buffer<KIND> table, ffi::Buffer<ffi::U32> key, ffi::Buffer<ffi::S32> own, int64_t prompts,
                 int64_t examples, ffi::ResultBuffer<KIND> loss, ffi::ResultBuffer<KIND> gradient) {
  using T = ffi::NativeType<KIND>;
  const auto shape = table.dimensions();
  const int64_t rows = shape[shape.size() - 2], columns = shape[shape.size() - 1], patterns = rows - columns;
  const Sizes sizes{prompts, examples, patterns, columns - patterns};
  Drawn drawn(sizes);
  for (int64_t run = 0; run < loss->element_count(); ++run) {
    Layer<T> layer(sizes, table.typed_data() + run * rows * columns);
    for (int64_t first = 0; first < prompts; first += SIDE) {
      drawn.draw(key.typed_data() + 2 * run, first, own.typed_data()[run]);
      layer.add(drawn, std::min(SIDE, prompts - first));
    }
    layer.mean(loss->typed_data() + run, gradient->typed_data() + run * rows * columns);
  }
  return ffi::Error::Success();
}

#define HANDLER(name, kind)                                                                               \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, fresh<kind>,                                                        \
                                ffi::Ffi::Bind()                                                          \
                                    .Arg<ffi::Buffer<kind>>()     /* table */                             \
                                    .Arg<ffi::Buffer<ffi::U32>>() /* key of the prompts */                \
                                    .Arg<ffi::Buffer<ffi::S32>>() /* examples with the query's pattern */ \
                                    .Attr<int64_t>("prompts")                                             \
                                    .Attr<int64_t>("examples")                                            \
                                    .Ret<ffi::Buffer<kind>>() /* loss */                                  \
                                    .Ret<ffi::Buffer<kind>>() /* gradient */)
HANDLER(fresh_float32, ffi::F32);
HANDLER(fresh_float64, ffi::F64);
