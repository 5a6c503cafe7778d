// Loss and gradient on fresh prompts of shift tasks: `network.slope` on what `Chains.draw` makes of a key.
//
// Prompts lie side by side, one in each place of a register. A task is a cycle, along which every chain takes 1, 2, ... places:
// columns of one step that begin at the same place are equal, so that they are counted; and what belongs to patterns is kept in
// the order of the cycle, where a step is the same shift in all prompts.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "elementary.h"
#include "kernel.h"
#include "scratch.h"
#include "threefry.h"
#include "vectors.h"


constexpr int TILE = 4;  // patterns whose words are compared with as many others at a time

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

// Tasks and examples of prompts side by side. Patterns and places are said by where they stand in arrays that have a row for each
// of them: SIDE times their number, and the number of the prompt.
struct Drawn {
  const Sizes& sizes;
  const int64_t padded;                           // patterns in whole tiles
  Word *keys, *words, *place, *others, *begun;    // place: of every pattern along the cycle; others: patterns that examples begin with
  // begun: how many examples begin at every place
  alignas(LINE) Word start[SIDE], end[SIDE];      // the places at which the query's chain begins, and where it goes
  alignas(LINE) Word query[SIDE], step[SIDE];     // the pattern of the query, the step that is asked for

  Drawn(const Sizes& s, Scratch& scratch)
      : sizes(s),
        padded(rounded_up(s.patterns, TILE)),
        keys(scratch.numbers<Word>(rounded_up(s.prompts, COUNT) * 6)),
        words(scratch.numbers<Word>((s.patterns + GROUP) * SIDE)),
        place(scratch.numbers<Word>((padded + s.steps) * SIDE)),
        others(scratch.numbers<Word>((s.examples + GROUP) * SIDE)),
        begun(scratch.numbers<Word>(s.patterns * SIDE)) {
    for (int64_t n = s.patterns * SIDE; n < (padded + s.steps) * SIDE; ++n) place[n] = n;
  }

  // The numbers of the prompts.
  static Row<Word> number() {
    alignas(LINE) Word found[SIDE];
    for (int64_t q = 0; q < SIDE; ++q) found[q] = q;
    return row(found, 0);
  }

  // The keys of all prompts: of the cycle, and of the two halves of the random numbers that examples come from.
  void draw_keys(const Word* key) {
    Group first, second, own, own_two, task, task_two, rest, rest_two, one, two;
    const auto part = [](const Group& first, const Group& second, Word which, Group& one, Group& two) {
      UNROLL for (int g = 0; g < GROUP; ++g) two[g] = Vector<Word>{} + which;
      threefry(first, second, one, two);
    };
    const auto keep = [&](int64_t begin, int64_t which) {
      UNROLL for (int g = 0; g < GROUP; ++g) {
        Word* at_g = keys + (begin / SIDE + g) * 6 * SIDE + 2 * which * SIDE;
        row(at_g, 0) = one[g], row(at_g, 1) = two[g];
      }
    };
    for (int64_t begin = 0; begin < sizes.prompts; begin += COUNT) {
      UNROLL for (int g = 0; g < GROUP; ++g) {
        first[g] = Vector<Word>{} + key[0], second[g] = Vector<Word>{} + key[1];
        own_two[g] = number() + Word(begin + g * SIDE);
      }
      threefry(first, second, own, own_two);
      part(own, own_two, 0, task, task_two), part(own, own_two, 1, rest, rest_two);
      part(task, task_two, 1, one, two), keep(begin, 0);
      part(rest, rest_two, 0, one, two), keep(begin, 1);
      part(rest, rest_two, 1, one, two), keep(begin, 2);
    }
  }

  // The prompts from `first` on, of whose examples `own` begin with the pattern that the query's chain begins with.
  void draw(int64_t first, int64_t own) {
    const auto keys_of = [&](int64_t which) {
      return Keys{row(keys, first / SIDE * 6 + 2 * which), row(keys, first / SIDE * 6 + 2 * which + 1)};
    };
    alignas(LINE) Word pattern[SIDE], ahead[SIDE], further[SIDE];
    for (int64_t q = 0, k = first % sizes.steps, i = first / sizes.steps % sizes.patterns; q < SIDE; ++q) {
      pattern[q] = i * SIDE + q, step[q] = k, ahead[q] = sizes.walked[k] * SIDE, further[q] = sizes.walked[k + 1] * SIDE;
      if (++k == sizes.steps) k = 0, i = sizes.around(i + 1);
    }
    draw_words(keys_of(0));
    draw_places();
    draw_others(keys_of(1), keys_of(2), row(pattern, 0), own);
    Word *const begun = this->begun, *const place = this->place, *const others = this->others;
    for (int64_t p = 0; p < sizes.patterns; ++p) row(begun, p) = Row<Word>{};
    for (int64_t q = 0; q < SIDE; ++q) start[q] = place[pattern[q]], begun[start[q]] = own;
    for (int64_t n = own * SIDE; n < sizes.examples * SIDE; n += SIDE)
      UNROLL for (int64_t q = 0; q < SIDE; ++q) ++begun[place[others[n + q]]];
    const Word all = sizes.patterns * SIDE;
    const Row<Word> now = less(row(start, 0) + row(ahead, 0), all);
    row(end, 0) = less(row(start, 0) + row(further, 0), all);
    Row<Word> found = {};
    for (int64_t i = 0; i < sizes.patterns; ++i) found += Word(i) & (Row<Word>)(row(place, i) == now);
    row(query, 0) = found;
  }

 private:
  void draw_words(const Keys& keys) {
    Word* const words = this->words;
    each_word(keys, 0, sizes.patterns,
              [words](int64_t n, const Vector<Word>& one, const Vector<Word>& two) { row(words, n) = one ^ two; });
    for (int64_t i = sizes.patterns; i < padded; ++i) row(words, i) = ~Row<Word>{};  // behind all others
  }

  // A place is the rank of a random word (`random_cycle`).
  void draw_places() {
    Word *const words = this->words, *const place = this->place;
    const Row<Word> own = number();
    for (int64_t i = 0; i < padded; i += TILE) {
      Row<Word> word[TILE], rank[TILE], other[TILE], others_rank[TILE];
      UNROLL for (int r = 0; r < TILE; ++r) word[r] = row(words, i + r), rank[r] = own + Word((padded - 1 - i - r) * SIDE);
      for (int64_t j = 0; j < i; j += TILE) {
        UNROLL for (int c = 0; c < TILE; ++c) other[c] = row(words, j + c), others_rank[c] = row(place, j + c);
        UNROLL for (int r = 0; r < TILE; ++r)
          UNROLL for (int c = 0; c < TILE; ++c) order(other[c], word[r], others_rank[c], rank[r]);
        UNROLL for (int c = 0; c < TILE; ++c) row(place, j + c) = others_rank[c];
      }
      UNROLL for (int r = 1; r < TILE; ++r)
        UNROLL for (int c = 0; c < r; ++c) order(word[c], word[r], rank[c], rank[r]);
      UNROLL for (int r = 0; r < TILE; ++r) row(place, i + r) = rank[r];
    }
  }

  // One place on for the later of two words, and one back for the earlier, which is the first where they are equal.
  static void order(const Row<Word>& first, const Row<Word>& second, Row<Word>& first_rank, Row<Word>& second_rank) {
    const auto right = first <= second;
    second_rank = right ? second_rank + Word(SIDE) : second_rank, first_rank = right ? first_rank - Word(SIDE) : first_rank;
  }

  // Patterns that lie `jax.random.randint(key, (examples,), 1, patterns)` after the given one, for all examples but the first.
  // Such a number is 1 and the rest of 128 random bits modulo M - 1; with 16 bits at a time a sum with that rest fits a word.
  void draw_others(const Keys& upper, const Keys& lower, const Row<Word>& given, int64_t first) {
    Word* const others = this->others;
    const Word span = sizes.patterns - 1, all = sizes.patterns * SIDE;
    const float per_span = 1.0f / span;
    Word power[8];  // 2^(16 n) modulo M - 1
    int64_t rest = 1 % span;
    for (Word& one : power) one = rest, rest = (rest << 16) % span;
    const auto part = [&power](const Vector<Word>& word, int n) {
      return (word & 0xFFFF) * power[2 * n] + (word >> 16) * power[2 * n + 1];
    };
    each_word(upper, first, sizes.examples, [&](int64_t n, const Vector<Word>& one, const Vector<Word>& two) {
      row(others, n) = part(one, 3) + part(two, 2);
    });
    const Row<Word> next = given + Word(SIDE);
    each_word(lower, first, sizes.examples, [&](int64_t n, const Vector<Word>& one, const Vector<Word>& two) {
      const Row<Word> sum = row(others, n) + part(one, 1) + part(two, 0);
      const Row<float> times = __builtin_convertvector((Row<int32_t>)sum, Row<float>) * per_span - 0.25f;  // or one more
      const Row<Word> left = sum - span * (Row<Word>)__builtin_convertvector(times, Row<int32_t>);
      row(others, n) = less(next + less(left, span) * Word(SIDE), all);
    });
  }

  // Modulo a number of which they are less than twice as much.
  static Row<Word> less(const Row<Word>& numbers, Word modulus) {
    return numbers < modulus ? numbers : numbers - modulus;
  }
};

// Numbers that are looked up together: of a pattern what a query says to columns that have it as their input, and as their
// output; then of two steps.
#define UNROLLED _Pragma("GCC unroll 4")
template <typename T>
struct Pair {
  T top, bottom;
};

template <typename T, int FROM, int... PLACE>
inline Vector<T> each_second(Vector<T> a, Vector<T> b, std::integer_sequence<int, PLACE...>) {
  return __builtin_shufflevector(a, b, (2 * PLACE + FROM)...);
}
template <typename T, int FROM, int... PLACE>
inline Vector<T> in_turns(Vector<T> a, Vector<T> b, std::integer_sequence<int, PLACE...>) {
  return __builtin_shufflevector(a, b, (FROM + PLACE / 2 + PLACE % 2 * WIDTH<T>)...);
}

// Loss and gradient of a table, added up over prompts side by side. A logit is a sum of six of its numbers. Where these are
// moderate, exponentials of the table are looked up instead, and multiplied.
template <typename T>
class Layer {
  static constexpr T MODERATE = -Elementary<T>::LOWEST / 8;
  const Sizes& sizes;
  const int64_t patterns, steps, pairs, stride;
  Pair<T> *turned, *found;  // the table and its gradient, by columns: a query asks for two of them
  Pair<T>* lines;           // the sum of these for every prompt
  Pair<T>* both;            // the same by place
  // By place: the parts of logits (then of their gradient) that belong to inputs and outputs of columns, and F - z.
  T *top, *bottom, *miss;
  T *examples, *chained;  // by place: how many examples begin there, whether the query's chain does
  T* share;               // attention, by step and beginning of a column
  Row<T> losses;
  bool moderate;

 public:
  Layer(const Sizes& s, Scratch& scratch)
      : sizes(s),
        patterns(s.patterns),
        steps(s.steps),
        pairs(patterns + (steps + 1) / 2),
        stride(rounded_up(2 * pairs, WIDTH<T>) / 2),
        turned(scratch.zeros<Pair<T>>(s.columns() * stride)),
        found(scratch.numbers<Pair<T>>(s.columns() * stride)),
        lines(scratch.zeros<Pair<T>>(SIDE * stride)),
        both(scratch.zeros<Pair<T>>(pairs * SIDE)),
        top(scratch.numbers<T>(pairs * SIDE)),
        bottom(scratch.numbers<T>(pairs * SIDE)),
        miss(scratch.numbers<T>(patterns * SIDE)),
        examples(scratch.numbers<T>(patterns * SIDE)),
        chained(scratch.numbers<T>(patterns * SIDE)),
        share(scratch.numbers<T>(steps * patterns * SIDE)) {}

  void begin(const T* table) {
    losses = Row<T>{};
    std::fill_n(found, sizes.columns() * stride, Pair<T>{});
    const int64_t columns = sizes.columns();
    for (int64_t c = 0; c < columns; ++c) {
      Pair<T>* const column = turned + c * stride;
      UNROLLED for (int64_t i = 0; i < patterns; ++i) column[i] = {table[i * columns + c], table[(patterns + i) * columns + c]};
      UNROLLED for (int64_t r = 2 * patterns; r < sizes.rows(); ++r) (&column->top)[r] = table[r * columns + c];
    }
    T* const numbers = &turned[0].top;
    const int64_t count = columns * stride * 2;
    Vector<typename Elementary<T>::Whole> fine = ~Vector<typename Elementary<T>::Whole>{};
    for (int64_t n = 0; n < count; n += WIDTH<T>) fine &= (at(numbers + n) <= MODERATE) & (at(numbers + n) >= -MODERATE);
    moderate = sum_of<typename Elementary<T>::Whole>(fine) == -WIDTH<T>;
    if (moderate)
      for (int64_t n = 0; n < count; n += WIDTH<T>) {
        Vector<T> one[] = {at(numbers + n)};
        to_exp<T>(one), at(numbers + n) = one[0];
      }
  }

  // The first `count` of the prompts.
  void add(const Drawn& drawn, int64_t count) {
    look_up(drawn, count);
    attend(drawn, count);
    pull_back(drawn, count);
  }

  void mean(T* mean_loss, T* gradient) {
    T sum = 0;
    for (int64_t q = 0; q < SIDE; ++q) sum += losses[q];
    *mean_loss = sum / (2 * sizes.prompts);
    const int64_t columns = sizes.columns();
    for (int64_t i = 0; i < patterns; ++i) {
      UNROLLED for (int64_t c = 0; c < columns; ++c) gradient[i * columns + c] = found[c * stride + i].top;
      UNROLLED for (int64_t c = 0; c < columns; ++c) gradient[(patterns + i) * columns + c] = found[c * stride + i].bottom;
    }
    for (int64_t r = 2 * patterns; r < sizes.rows(); ++r)
      UNROLLED for (int64_t c = 0; c < columns; ++c) gradient[r * columns + c] = (&found[c * stride].top)[r];
  }

 private:
  // By step: numbers that belong to it.
  T* step(int64_t k) const { return (k % 2 ? bottom : top) + (patterns + k / 2) * SIDE; }

  // What the query of every prompt says to inputs, outputs and steps. (Lines of all prompts first: reading one while it is being
  // written waits for memory.)
  void look_up(const Drawn& drawn, int64_t count) {
    const int64_t stride = this->stride, pairs = this->pairs;
    const bool moderate = this->moderate;
    for (int64_t q = 0; q < count; ++q) {
      const T *pattern = &turned[drawn.query[q] * stride].top, *now = &turned[(patterns + drawn.step[q]) * stride].top;
      T* const line = &lines[q * stride].top;
      for (int64_t n = 0; n < 2 * stride; n += WIDTH<T>)
        at(line + n) = moderate ? at(pattern + n) * at(now + n) : at(pattern + n) + at(now + n);
    }
    Pair<T>* const both = this->both;
    for (int64_t q = 0; q < count; ++q) {
      const Pair<T>* line = lines + q * stride;
      const Word* place = drawn.place + q;
      _Pragma("GCC unroll 4") for (int64_t n = 0; n < pairs; ++n) both[place[n * SIDE]] = line[n];
    }
    const T* from = &both[0].top;
    T *const top = this->top, *const bottom = this->bottom;
    for (int64_t n = 0; n < pairs * SIDE; n += WIDTH<T>) {
      const Vector<T> one = at(from + 2 * n), two = at(from + 2 * n + WIDTH<T>);
      at(top + n) = each_second<T, 0>(one, two, std::make_integer_sequence<int, WIDTH<T>>{});
      at(bottom + n) = each_second<T, 1>(one, two, std::make_integer_sequence<int, WIDTH<T>>{});
    }
  }

  // To the columns of the table that the query asked for.
  void pull_back(const Drawn& drawn, int64_t count) {
    const int64_t stride = this->stride, pairs = this->pairs;
    T* const to = &both[0].top;
    for (int64_t n = 0; n < pairs * SIDE; n += WIDTH<T>) {
      const Vector<T> one = at(top + n), two = at(bottom + n);
      at(to + 2 * n) = in_turns<T, 0>(one, two, std::make_integer_sequence<int, WIDTH<T>>{});
      at(to + 2 * n + WIDTH<T>) = in_turns<T, WIDTH<T> / 2>(one, two, std::make_integer_sequence<int, WIDTH<T>>{});
    }
    for (int64_t q = 0; q < count; ++q) {
      Pair<T>* line = lines + q * stride;
      const Word* place = drawn.place + q;
      _Pragma("GCC unroll 4") for (int64_t n = 0; n < pairs; ++n) line[n] = both[place[n * SIDE]];
    }
    T *const all = &found[0].top, *const line = &lines[0].top;
    for (int64_t n = 0; n < 2 * stride; n += WIDTH<T>)
      for (int64_t k = 0; k < std::min(steps, count); ++k) {  // the first prompts ask for all steps in turn
        T* const now = all + (patterns + drawn.step[k]) * stride * 2 + n;
        Vector<T> sum = at(now);
        for (int64_t q = k; q < count; q += steps) {
          const Vector<T> own = at(line + q * stride * 2 + n);
          at(all + drawn.query[q] * stride * 2 + n) += own, sum += own;
        }
        at(now) = sum;
      }
  }

  // Calls `visit(place, input, output)` for the columns of a step: the place where their chains begin, and those of their patterns.
  template <typename Visit>
  void each_column(int64_t k, Visit visit) const {
    for (int64_t begin = 0; begin < sizes.patterns;) {
      const int64_t input = sizes.around(begin + sizes.walked[k]), output = sizes.around(begin + sizes.walked[k + 1]);
      const int64_t count = sizes.patterns - std::max({begin, input, output});
      for (int64_t n = 0; n < count; ++n) visit(begin + n, input + n, output + n);
      begin += count;
    }
  }

  // Attention before it is divided by its sum, from exponentials of the parts of a logit.
  void multiply(const Row<T>& asked) {
    T *const top = this->top, *const bottom = this->bottom, *const share = this->share, *const miss = this->miss;
    const int64_t patterns = this->patterns;
    for (int64_t k = 0; k < steps; ++k) {
      const Row<T> more = asked > T(k) ? Row<T>{} + 1 : Row<T>{}, now = row(step(k), 0);
      each_column(k, [&](int64_t place, int64_t input, int64_t output) {
        const Row<T> often = row(chained, place) * more + row(examples, place);
        const Row<T> weight = often * now * (row(top, input) * row(bottom, output));
        row(share, k * patterns + place) = weight, row(miss, output) += weight;
      });
    }
  }

  // The same from the parts themselves.
  void exponentiate(const Row<T>& asked) {
    constexpr T NEVER = -std::numeric_limits<T>::infinity();
    T *const top = this->top, *const bottom = this->bottom, *const share = this->share, *const miss = this->miss;
    const int64_t patterns = this->patterns;
    Row<T> most = Row<T>{} + NEVER;
    for (int64_t k = 0; k < steps; ++k) {
      const Row<T> more = asked > T(k) ? Row<T>{} + 1 : Row<T>{}, now = row(step(k), 0);
      each_column(k, [&](int64_t place, int64_t input, int64_t output) {
        const Row<T> often = row(chained, place) * more + row(examples, place);
        const Row<T> logit = often > 0 ? row(top, input) + row(bottom, output) + now : Row<T>{} + NEVER;
        row(share, k * patterns + place) = logit, most = logit > most ? logit : most;
      });
    }
    for (int64_t k = 0; k < steps; ++k) {
      const Row<T> more = asked > T(k) ? Row<T>{} + 1 : Row<T>{};
      each_column(k, [&](int64_t place, int64_t, int64_t output) {
        const Row<T> often = row(chained, place) * more + row(examples, place);
        const Row<T> weight = often * exp_below_of<T>(row(share, k * patterns + place) - most);
        row(share, k * patterns + place) = weight, row(miss, output) += weight;
      });
    }
  }

  // Attention and loss; then the gradient in the logits, s_i ((F - z)_i - sum_r s_r (F - z)_r), added up for inputs, outputs
  // (which have (F - z)_i in common) and steps.
  void attend(const Drawn& drawn, int64_t count) {
    T *const top = this->top, *const bottom = this->bottom, *const miss = this->miss, *const share = this->share;
    const int64_t patterns = this->patterns;
    const auto numbers = [](const Row<Word>& of) { return __builtin_convertvector((Row<int32_t>)of, Row<T>); };
    const Row<T> asked = numbers(row(drawn.step, 0));
    const Row<T> start = numbers(row(drawn.start, 0) / Word(SIDE)), end = numbers(row(drawn.end, 0) / Word(SIDE));
    for (int64_t p = 0; p < patterns; ++p) {
      row(examples, p) = numbers(row(drawn.begun, p));
      row(chained, p) = start == T(p) ? Row<T>{} + 1 : Row<T>{};
      row(miss, p) = Row<T>{};
    }
    moderate ? multiply(asked) : exponentiate(asked);
    Row<T> total = {}, common = {}, squares = {};
    for (int64_t p = 0; p < patterns; ++p) total += row(miss, p);
    const Row<T> over = 1 / total;
    for (int64_t p = 0; p < patterns; ++p) {
      const Row<T> f = row(miss, p) * over, less = end == T(p) ? f - 1 : f;
      row(bottom, p) = f, row(miss, p) = less, common += f * less, squares += less * less;
    }
    losses += numbers(drawn.number()) < T(count) ? squares : Row<T>{};
    const T each = T(1) / sizes.prompts;
    const Row<T> scale = over * each;
    for (int64_t p = 0; p < patterns; ++p) {
      const Row<T> less = row(miss, p) - common;
      row(bottom, p) *= less * each, row(miss, p) = less * scale, row(top, p) = Row<T>{};
    }
    for (int64_t k = 0; k < steps; ++k) {
      Row<T> sum = {};
      each_column(k, [&](int64_t place, int64_t input, int64_t output) {
        const Row<T> pull = row(share, k * patterns + place) * row(miss, output);
        row(top, input) += pull, sum += pull;
      });
      row(step(k), 0) = sum;
    }
  }
};

// Given: table, key of the prompts, examples with the query's pattern. Found: loss, its gradient. Lanes come first in all.
template <typename T>
void fresh(Call call) {
  const int64_t rows = call.last(0, 2), columns = call.last(0, 1), patterns = rows - columns, prompts = call.number("prompts");
  const Sizes sizes(prompts, call.number("examples"), patterns, columns - patterns);
  Scratch scratch;
  Drawn drawn(sizes, scratch);
  Layer<T> layer(sizes, scratch);
  for (int64_t run = 0; run < call.count_found(0); ++run) {
    layer.begin(call.given<T>(0) + run * rows * columns);
    drawn.draw_keys(call.given<Word>(1) + 2 * run);
    for (int64_t first = 0; first < prompts; first += SIDE) {
      drawn.draw(first, call.given<int32_t>(2)[run]);
      layer.add(drawn, std::min(SIDE, prompts - first));
    }
    layer.mean(call.found<T>(0) + run, call.found<T>(1) + run * rows * columns);
  }
}

HANDLER(fresh_float32, fresh<float>)
HANDLER(fresh_float64, fresh<double>)
