// Loss and gradient on fresh prompts of shift tasks: `network.slope` on what `Chains.draw` makes of a key.
//
// Prompts lie side by side, one in each place of a register. A task is a cycle, along which every chain takes 1, 2, ... places:
// columns of one step that begin at the same place are equal, so that they are counted; and what belongs to patterns is kept in
// the order of the cycle, where a step is the same shift in all prompts.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "elementary.h"
#include "kernel.h"
#include "threefry.h"
#include "vectors.h"

struct Sizes {
  int64_t prompts, examples, patterns, steps;
  std::vector<int64_t> walked;  // places from the beginning of a chain to each of its states

  Sizes(int64_t prompts, int64_t examples, int64_t patterns, int64_t steps)
      : prompts(prompts), examples(examples), patterns(patterns), steps(steps) {
    for (int64_t k = 0; k <= steps; ++k) walked.push_back(k * (k + 1) / 2 % patterns);
  }
  int64_t rows() const { return 2 * patterns + steps; }
  int64_t columns() const { return patterns + steps; }
  int64_t around(int64_t place) const { return place < patterns ? place : place - patterns; }
};

// Tasks and examples of prompts side by side.
struct Drawn {
  const Sizes& sizes;
  Zeros<Word> words, place, others;  // place: of every pattern along the cycle; others: patterns that examples begin with
  Zeros<float> begun;                // how many examples begin at every place
  alignas(LINE) Word query[SIDE];    // the pattern of the query
  int64_t start[SIDE], step[SIDE];   // the place at which its chain begins, the step that is asked for

  explicit Drawn(const Sizes& s)
      : sizes(s),
        words((s.patterns + GROUP) * SIDE),
        place(s.patterns * SIDE),
        others((s.examples + GROUP) * SIDE),
        begun(s.patterns * SIDE) {}

  // The prompts from `first` on, of whose examples `own` begin with the pattern that the query's chain begins with.
  void draw(const Word* key, int64_t first, int64_t own) {
    const Keys keys = folded(key, first), rest = part_of(keys, 1);
    alignas(LINE) Word pattern[SIDE], now[SIDE];
    for (int64_t q = 0, k = first % sizes.steps, i = first / sizes.steps % sizes.patterns; q < SIDE; ++q) {
      pattern[q] = i, step[q] = k;
      if (++k == sizes.steps) k = 0, i = sizes.around(i + 1);
    }
    draw_places(part_of(part_of(keys, 0), 1));
    draw_others(part_of(rest, 0), part_of(rest, 1), row(pattern, 0), own);
    for (int64_t p = 0; p < sizes.patterns; ++p) row<float>(begun, p) = Row<float>{};
    for (int64_t q = 0; q < SIDE; ++q) {
      start[q] = place[pattern[q] * SIDE + q];
      now[q] = sizes.around(start[q] + sizes.walked[step[q]]);
      begun[start[q] * SIDE + q] = own;
    }
    for (int64_t n = own; n < sizes.examples; ++n)
      for (int64_t q = 0; q < SIDE; ++q) begun[place[others[n * SIDE + q] * SIDE + q] * SIDE + q] += 1;
    Row<Word> found = {};
    for (int64_t i = 0; i < sizes.patterns; ++i) found += Word(i) & (Row<Word>)(row<Word>(place, i) == row(now, 0));
    row(query, 0) = found;
  }

 private:
  // A place is the rank of a random word (`random_cycle`).
  void draw_places(const Keys& keys) {
    Word *const words = this->words, *const place = this->place;
    each_word(keys, 0, sizes.patterns,
              [words](int64_t n, const Vector<Word>& one, const Vector<Word>& two) { row(words, n) = one ^ two; });
    for (int64_t i = 0; i < sizes.patterns; ++i) {
      Row<Word> rank = Row<Word>{} + Word(sizes.patterns - 1 - i);
      const Row<Word> word = row(words, i);
      for (int64_t j = 0; j < i; ++j) {
        const Row<Word> earlier = (Row<Word>)(row(words, j) <= word);  // -1 where pattern j has the earlier place
        rank -= earlier, row(place, j) += earlier;
      }
      row(place, i) = rank;
    }
  }

  // Patterns that lie `jax.random.randint(key, (examples,), 1, patterns)` after the given one, for all examples but the first.
  // Such a number is 1 and the rest of 128 random bits modulo M - 1; with 16 bits at a time a sum with that rest fits a word.
  void draw_others(const Keys& upper, const Keys& lower, const Row<Word>& given, int64_t first) {
    const int64_t span = sizes.patterns - 1;
    Word power[8];  // 2^(16 n) modulo M - 1
    int64_t rest = 1 % span;
    for (Word& one : power) one = rest, rest = (rest << 16) % span;
    const auto part = [&power](const Vector<Word>& word, int n) {
      return (word & 0xFFFF) * power[2 * n] + (word >> 16) * power[2 * n + 1];
    };
    each_word(upper, first, sizes.examples, [&](int64_t n, const Vector<Word>& one, const Vector<Word>& two) {
      row<Word>(others, n) = part(one, 3) + part(two, 2);
    });
    each_word(lower, first, sizes.examples, [&](int64_t n, const Vector<Word>& one, const Vector<Word>& two) {
      const Row<int32_t> sum = (Row<int32_t>)(row<Word>(others, n) + part(one, 1) + part(two, 0));
      const Row<double> times = (__builtin_convertvector(sum, Row<double>) + 0.5) * (1.0 / span);
      const Row<int32_t> left = sum - int32_t(span) * __builtin_convertvector(times, Row<int32_t>);
      const Row<Word> found = given + (Row<Word>)left + 1;
      row<Word>(others, n) = found < Word(sizes.patterns) ? found : found - Word(sizes.patterns);
    });
  }
};

// Loss and gradient of a table, added up over prompts side by side.
template <typename T>
class Layer {
  const Sizes& sizes;
  const int64_t stride;
  Zeros<T> turned, found;  // the table and its gradient, rows and columns exchanged: a query asks for two of these rows
  Zeros<T> lines;          // a row of them for every prompt
  // By place: the parts of logits (then of their gradient) that belong to inputs and outputs of columns, and F - z.
  Zeros<T> top, bottom, miss;
  Zeros<T> often, share;  // by step and beginning: how many such columns there are, their attention
  Zeros<T> step;
  T loss = 0;

 public:
  explicit Layer(const Sizes& s)
      : sizes(s),
        stride(rounded_up(s.rows(), WIDTH<T>)),
        turned(s.columns() * stride),
        found(s.columns() * stride),
        lines(SIDE * stride),
        top(s.patterns * SIDE),
        bottom(s.patterns * SIDE),
        miss(s.patterns * SIDE),
        often(s.steps * s.patterns * SIDE),
        share(s.steps * s.patterns * SIDE),
        step(s.steps * SIDE) {}

  void begin(const T* table) {
    loss = 0;
    std::fill_n(static_cast<T*>(found), sizes.columns() * stride, T(0));
    for (int64_t r = 0; r < sizes.rows(); ++r)
      for (int64_t c = 0; c < sizes.columns(); ++c) turned[c * stride + r] = table[r * sizes.columns() + c];
  }

  // The first `count` of the prompts.
  void add(Drawn& drawn, int64_t count) {
    look_up(drawn, count);
    attend(drawn, count);
    pull_back(drawn, count);
  }

  void mean(T* mean_loss, T* gradient) {
    const T each = T(1) / sizes.prompts;
    *mean_loss = loss * each;
    for (int64_t r = 0; r < sizes.rows(); ++r)
      for (int64_t c = 0; c < sizes.columns(); ++c) gradient[r * sizes.columns() + c] = found[c * stride + r] * each;
  }

 private:
  // What the query of every prompt says to inputs, outputs and steps. (Lines of all prompts first: reading one while it is being
  // written waits for memory.)
  void look_up(Drawn& drawn, int64_t count) {
    for (int64_t q = 0; q < count; ++q) {
      const T *pattern = turned + drawn.query[q] * stride, *now = turned + (sizes.patterns + drawn.step[q]) * stride;
      for (int64_t r = 0; r < stride; r += WIDTH<T>) at(lines + q * stride + r) = at(pattern + r) + at(now + r);
    }
    for (int64_t q = 0; q < count; ++q) {
      const T* line = lines + q * stride;
      T *to_top = top + q, *to_bottom = bottom + q, *to_step = step + q;
      for (int64_t i = 0; i < sizes.patterns; ++i) {
        const int64_t place = drawn.place[i * SIDE + q] * SIDE;
        to_top[place] = line[i], to_bottom[place] = line[sizes.patterns + i];
      }
      for (int64_t k = 0; k < sizes.steps; ++k) to_step[k * SIDE] = line[2 * sizes.patterns + k];
    }
  }

  // To the rows of the table that the query asked for.
  void pull_back(Drawn& drawn, int64_t count) {
    for (int64_t q = 0; q < count; ++q) {
      T* line = lines + q * stride;
      const T *of_top = top + q, *of_bottom = bottom + q, *of_step = step + q;
      for (int64_t i = 0; i < sizes.patterns; ++i) {
        const int64_t place = drawn.place[i * SIDE + q] * SIDE;
        line[i] = of_top[place], line[sizes.patterns + i] = of_bottom[place];
      }
      for (int64_t k = 0; k < sizes.steps; ++k) line[2 * sizes.patterns + k] = of_step[k * SIDE];
    }
    for (int64_t q = 0; q < count; ++q) {
      T *pattern = found + drawn.query[q] * stride, *now = found + (sizes.patterns + drawn.step[q]) * stride;
      for (int64_t r = 0; r < stride; r += WIDTH<T>) {
        const Vector<T> line = at(lines + q * stride + r);
        at(pattern + r) += line, at(now + r) += line;
      }
    }
  }

  // Calls `visit(column, input, output)` for the columns of a step, by the place where their chains begin: where in `often`, and
  // the places of their patterns.
  template <typename Visit>
  void each_column(int64_t k, Visit visit) const {
    int64_t input = sizes.walked[k], output = sizes.around(input + (k + 1) % sizes.patterns);
    for (int64_t p = 0; p < sizes.patterns; ++p) {
      visit(k * sizes.patterns + p, input, output);
      input = sizes.around(input + 1), output = sizes.around(output + 1);
    }
  }

  // Attention and loss; then the gradient in the logits, s_i ((F - z)_i - sum_r s_r (F - z)_r), added up for inputs, outputs
  // (which have (F - z)_i in common) and steps.
  void attend(Drawn& drawn, int64_t count) {
    constexpr T NEVER = -std::numeric_limits<T>::infinity();
    T *const top = this->top, *const bottom = this->bottom, *const miss = this->miss, *const step = this->step;
    T *const often = this->often, *const share = this->share;
    for (int64_t k = 0; k < sizes.steps; ++k)
      for (int64_t p = 0; p < sizes.patterns; ++p)
        row(often, k * sizes.patterns + p) = __builtin_convertvector(row<float>(drawn.begun, p), Row<T>);
    for (int64_t q = 0; q < count; ++q)  // the earlier columns of the query's own chain
      for (int64_t k = 0; k < drawn.step[q]; ++k) often[(k * sizes.patterns + drawn.start[q]) * SIDE + q] += 1;
    Row<T> most = Row<T>{} + NEVER, total = {}, common = {}, squares = {};
    for (int64_t k = 0; k < sizes.steps; ++k)
      each_column(k, [&](int64_t column, int64_t input, int64_t output) {
        const Row<T> sum = row(top, input) + row(bottom, output) + row(step, k);
        const Row<T> logit = row(often, column) > 0 ? sum : Row<T>{} + NEVER;
        row(share, column) = logit, most = logit > most ? logit : most;
      });
    for (int64_t p = 0; p < sizes.patterns; ++p) row(miss, p) = Row<T>{};
    for (int64_t k = 0; k < sizes.steps; ++k)
      each_column(k, [&](int64_t column, int64_t, int64_t output) {
        const Row<T> weight = row(often, column) * exp_below_of<T>(row(share, column) - most);
        row(share, column) = weight, row(miss, output) += weight, total += weight;
      });
    const Row<T> over = 1 / total;
    for (int64_t p = 0; p < sizes.patterns; ++p) row(bottom, p) = row(miss, p) *= over;
    for (int64_t q = 0; q < count; ++q)
      miss[sizes.around(drawn.start[q] + sizes.walked[drawn.step[q] + 1]) * SIDE + q] -= 1;
    for (int64_t p = 0; p < sizes.patterns; ++p)
      common += row(bottom, p) * row(miss, p), squares += row(miss, p) * row(miss, p);
    for (int64_t q = 0; q < count; ++q) loss += squares[q] / 2;
    for (int64_t p = 0; p < sizes.patterns; ++p)
      row(miss, p) -= common, row(bottom, p) *= row(miss, p), row(top, p) = Row<T>{};
    for (int64_t k = 0; k < sizes.steps; ++k) {
      Row<T> sum = {};
      each_column(k, [&](int64_t column, int64_t input, int64_t output) {
        const Row<T> pull = row(share, column) * over * row(miss, output);
        row(top, input) += pull, sum += pull;
      });
      row(step, k) = sum;
    }
  }
};

// Given: table, key of the prompts, examples with the query's pattern. Found: loss, its gradient. Lanes come first in all.
template <typename T>
void fresh(Call call) {
  const int64_t rows = call.last(0, 2), columns = call.last(0, 1), patterns = rows - columns, prompts = call.number("prompts");
  const Sizes sizes(prompts, call.number("examples"), patterns, columns - patterns);
  Drawn drawn(sizes);
  Layer<T> layer(sizes);
  for (int64_t run = 0; run < call.count_found(0); ++run) {
    layer.begin(call.given<T>(0) + run * rows * columns);
    for (int64_t first = 0; first < prompts; first += SIDE) {
      drawn.draw(call.given<Word>(1) + 2 * run, first, call.given<int32_t>(2)[run]);
      layer.add(drawn, std::min(SIDE, prompts - first));
    }
    layer.mean(call.found<T>(0) + run, call.found<T>(1) + run * rows * columns);
  }
}

HANDLER(fresh_float32, fresh<float>)
HANDLER(fresh_float64, fresh<double>)
