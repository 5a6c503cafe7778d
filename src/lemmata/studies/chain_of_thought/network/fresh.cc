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

constexpr int TILE = 4;  // patterns whose words are compared with the others together
constexpr int KEYS = 3;  // that are kept of every prompt
constexpr Word SIGN = 1u << 31;  // makes of words numbers with a sign in the same order, which all processors compare

struct Sizes {
  int64_t prompts, examples, patterns, steps;
  std::vector<int64_t> walked;  // places from the beginning of a chain to each of its states
  int64_t reach;                // the most of them

  Sizes(int64_t prompts, int64_t examples, int64_t patterns, int64_t steps)
      : prompts(prompts), examples(examples), patterns(patterns), steps(steps) {
    for (int64_t k = 0; k <= steps; ++k) walked.push_back(k * (k + 1) / 2 % patterns);
    reach = *std::max_element(walked.begin(), walked.end());
  }
  int64_t rows() const { return 2 * patterns + steps; }
  int64_t columns() const { return patterns + steps; }
  int64_t around(int64_t place) const { return place < patterns ? place : place - patterns; }
};

// Tasks and examples of prompts side by side. Patterns and places are said by where they stand in arrays that have a row for each
// of them: SIDE times their number, and the number of the prompt.
struct Drawn {
  const Sizes& sizes;
  const int64_t padded;                        // patterns in whole tiles
  Word* keys;                                  // some of every prompt
  Word *words, *place;                         // of every pattern: a random word, its place along the cycle
  Word *others, *begun;                        // patterns that examples begin with; how many begin at every place
  alignas(LINE) Word start[SIDE], end[SIDE];   // the places where the query's chain begins, and of the label
  alignas(LINE) Word query[SIDE], step[SIDE];  // the numbers of the query's pattern and of the step that is asked for

  Drawn(const Sizes& s, Scratch& scratch)
      : sizes(s),
        padded(rounded_up(s.patterns, TILE)),
        keys(scratch.numbers<Word>(rounded_up(s.prompts, COUNT) * 2 * KEYS)),
        words(scratch.numbers<Word>((s.patterns + GROUP) * SIDE)),
        place(scratch.numbers<Word>((padded + s.steps) * SIDE)),
        others(scratch.numbers<Word>((s.examples + GROUP) * SIDE)),
        begun(scratch.numbers<Word>(s.patterns * SIDE)) {
    for (int64_t n = s.patterns * SIDE; n < (padded + s.steps) * SIDE; ++n) place[n] = n;  // steps stay where they are
  }

  // The numbers of prompts side by side.
  static Row<Word> numbers() {
    alignas(LINE) Word found[SIDE];
    for (int64_t q = 0; q < SIDE; ++q) found[q] = q;
    return row(found, 0);
  }

  // The keys of all prompts: of the cycle, and of the upper and lower half of the random numbers that choose examples.
  void draw_keys(const Word* key) {
    for (int64_t first = 0; first < sizes.prompts; first += COUNT) {
      Group one, two, prompt[2], task[2], rest[2];
      UNROLL for (int g = 0; g < GROUP; ++g) {
        one[g] = Vector<Word>{} + key[0], two[g] = Vector<Word>{} + key[1];
        prompt[1][g] = numbers() + Word(first + g * SIDE);
      }
      threefry(one, two, prompt[0], prompt[1]);
      split(prompt, 0, task), split(prompt, 1, rest);
      keep(first, 0, task, 1), keep(first, 1, rest, 0), keep(first, 2, rest, 1);
    }
  }

  // The prompts from `first` on, of whose examples `own` begin with the pattern that the query's chain begins with.
  void draw(int64_t first, int64_t own) {
    const auto keys_of = [&](int64_t which) {
      const Word* own = keys + 2 * (first * KEYS + which * SIDE);
      return Keys{row(own, 0), row(own, 1)};
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
  // One of the keys that `jax.random.split` makes of each.
  static void split(const Group (&keys)[2], Word which, Group (&found)[2]) {
    UNROLL for (int g = 0; g < GROUP; ++g) found[1][g] = Vector<Word>{} + which;
    threefry(keys[0], keys[1], found[0], found[1]);
  }

  void keep(int64_t first, int64_t place, const Group (&keys)[2], Word which) const {
    Group found[2];
    split(keys, which, found);
    UNROLL for (int g = 0; g < GROUP; ++g) {
      Word* const own = this->keys + 2 * ((first + g * SIDE) * KEYS + place * SIDE);
      row(own, 0) = found[0][g], row(own, 1) = found[1][g];
    }
  }

  void draw_words(const Keys& keys) {
    Word* const words = this->words;
    each_word(keys, 0, sizes.patterns,
              [words](int64_t n, const Vector<Word>& one, const Vector<Word>& two) { row(words, n) = one ^ two ^ SIGN; });
    for (int64_t i = sizes.patterns; i < padded; ++i) row(words, i) = ~Row<Word>{} ^ SIGN;  // behind all others
  }

  // A place is the rank of a random word (`random_cycle`).
  void draw_places() {
    Word *const words = this->words, *const place = this->place;
    const Row<Word> numbers = Drawn::numbers();
    for (int64_t i = 0; i < padded; i += TILE) {
      Row<Word> word[TILE], rank[TILE];
      UNROLL for (int r = 0; r < TILE; ++r) word[r] = row(words, i + r), rank[r] = Row<Word>{} + Word(i + r);
      for (int64_t j = 0; j < i; ++j) {
        const Row<Word> other = row(words, j);
        Row<Word> others_rank = row(place, j);
        UNROLL for (int r = 0; r < TILE; ++r) order(other, word[r], others_rank, rank[r]);
        row(place, j) = others_rank;
      }
      UNROLL for (int r = 1; r < TILE; ++r)
        UNROLL for (int c = 0; c < r; ++c) order(word[c], word[r], rank[c], rank[r]);
      UNROLL for (int r = 0; r < TILE; ++r) row(place, i + r) = rank[r];
    }
    for (int64_t i = 0; i < padded; ++i) row(place, i) = row(place, i) * Word(SIDE) + numbers;
  }

  // Where the first of two words is larger, it has one more before it, and the other one less.
  static void order(const Row<Word>& first, const Row<Word>& second, Row<Word>& first_rank, Row<Word>& second_rank) {
    const auto wrong = (Row<int32_t>)first > (Row<int32_t>)second;
    first_rank -= (Row<Word>)wrong, second_rank += (Row<Word>)wrong;
  }

  // Patterns that lie `jax.random.randint(key, (examples,), 1, patterns)` after the given one, for all examples but the first.
  // Such a number is 1 and the rest of 128 random bits modulo M - 1; with 16 bits at a time a sum with that rest fits a word.
  // (The lower 16 bits of a word are the word without the upper ones.)
  void draw_others(const Keys& upper, const Keys& lower, const Row<Word>& given, int64_t first) {
    Word* const others = this->others;
    const Word span = sizes.patterns - 1, all = sizes.patterns * SIDE;
    const float per_span = 1.0f / span;
    Word power[8];  // 2^(16 n) modulo M - 1
    int64_t rest = 1 % span;
    for (Word& one : power) one = rest, rest = (rest << 16) % span;
    const auto part = [&power](const Vector<Word>& word, int n) {
      return word * power[2 * n] + (word >> 16) * (power[2 * n + 1] - (power[2 * n] << 16));
    };
    each_word(upper, first, sizes.examples, [&](int64_t n, const Vector<Word>& one, const Vector<Word>& two) {
      row(others, n) = part(one, 3) + part(two, 2);
    });
    const Row<Word> next = given + Word(SIDE);
    // The quotient, rounded down, or one less: floats are off by less than a quarter of 1, as it is below 2^19.
    each_word(lower, first, sizes.examples, [&](int64_t n, const Vector<Word>& one, const Vector<Word>& two) {
      const Row<Word> sum = row(others, n) + part(one, 1) + part(two, 0);
      const Row<float> times = __builtin_convertvector((Row<int32_t>)sum, Row<float>) * per_span - 0.25f;
      const Row<Word> left = sum - span * (Row<Word>)__builtin_convertvector(times, Row<int32_t>);
      row(others, n) = less(next + less(left, span) * Word(SIDE), all);
    });
  }

  // Modulo a number of which they are less than twice as much: what is below 0 is a large word.
  static Row<Word> less(const Row<Word>& numbers, Word modulus) {
    const Row<Word> other = numbers - modulus;
    return numbers < other ? numbers : other;
  }
};

// Numbers that are looked up together: of a pattern what a query says to columns that have it as their input, and as their
// output; then of two steps.
template <typename T>
struct Pair {
  T one, two;
};

// Of pairs the first or the second numbers; and pairs of them, the first half or the second.
template <typename T, int WHICH, int... PLACE>
inline Vector<T> parted(Vector<T> a, Vector<T> b, std::integer_sequence<int, PLACE...>) {
  return __builtin_shufflevector(a, b, (2 * PLACE + WHICH)...);
}
template <typename T, int WHICH, int... PLACE>
inline Vector<T> paired(Vector<T> a, Vector<T> b, std::integer_sequence<int, PLACE...>) {
  return __builtin_shufflevector(a, b, ((WHICH * WIDTH<T> + PLACE) / 2 + PLACE % 2 * WIDTH<T>)...);
}

// Loss and gradient of a table, added up over prompts side by side. A logit is a sum of six numbers of the table. Where these are
// moderate, a product of six exponentials is the same, neither too large nor too small: then those of the table are looked up.
template <typename T>
class Layer {
  using Whole = typename Elementary<T>::Whole;
  static constexpr T MODERATE = -Elementary<T>::LOWEST / 8;
  static constexpr auto PLACES = std::make_integer_sequence<int, WIDTH<T>>{};
  const Sizes& sizes;
  const int64_t patterns, steps, pairs, stride;
  Pair<T> *turned, *found;  // the table and its gradient, by columns: a query asks for two of them
  Pair<T> *lines, *both;    // these put together for every prompt; the same by place
  // By place: what belongs to inputs and outputs of columns (then its gradient), and F - z. Behind the last place the first ones
  // come again, as far as a chain goes, so that columns need not turn there.
  T *top, *bottom, *miss;
  T* now;                   // what belongs to steps
  T *examples, *chained;    // by place: how many examples begin there, whether the query's chain does
  T* share;                 // attention, by step and beginning of a column
  Row<T> losses;
  bool moderate;

 public:
  Layer(const Sizes& s, Scratch& scratch)
      : sizes(s),
        patterns(s.patterns),
        steps(s.steps),
        pairs(patterns + (steps + 1) / 2),
        stride(rounded_up(2 * pairs, WIDTH<T>) / 2),
        turned(scratch.numbers<Pair<T>>(s.columns() * stride)),
        found(scratch.numbers<Pair<T>>(s.columns() * stride)),
        lines(scratch.numbers<Pair<T>>(SIDE * stride)),
        both(scratch.zeros<Pair<T>>(pairs * SIDE)),
        top(scratch.numbers<T>((pairs + patterns) * SIDE)),
        bottom(scratch.numbers<T>((pairs + patterns) * SIDE)),
        miss(scratch.numbers<T>(2 * patterns * SIDE)),
        now(scratch.numbers<T>(steps * SIDE)),
        examples(scratch.numbers<T>(patterns * SIDE)),
        chained(scratch.numbers<T>(patterns * SIDE)),
        share(scratch.numbers<T>(steps * patterns * SIDE)) {}

  void begin(const T* table) {
    const int64_t columns = sizes.columns(), rows = sizes.rows();
    losses = Row<T>{};
    std::fill_n(found, columns * stride, Pair<T>{});
    for (int64_t c = 0; c < columns; ++c) {
      Pair<T>* const to = turned + c * stride;
      UNROLL for (int64_t i = 0; i < patterns; ++i) to[i] = {table[i * columns + c], table[(patterns + i) * columns + c]};
      UNROLL for (int64_t r = 2 * patterns; r < 2 * stride; ++r) (&to->one)[r] = r < rows ? table[r * columns + c] : 0;
    }
    T *const first = &turned->one, *const last = first + columns * stride * 2;
    Vector<Whole> fine = ~Vector<Whole>{};
    for (T* n = first; n < last; n += WIDTH<T>) fine &= (at(n) <= MODERATE) & (at(n) >= -MODERATE);
    moderate = sum_of<Whole>(fine) == -WIDTH<T>;
    if (moderate)
      for (T* n = first; n < last; n += WIDTH<T>) {
        Vector<T> some[] = {at(n)};
        to_exp<T>(some), at(n) = some[0];
      }
  }

  // The first `count` of the prompts.
  void add(const Drawn& drawn, int64_t count) {
    look_up(drawn, count);
    attend(drawn, count);
    pull_back(drawn, count);
  }

  void mean(T* mean_loss, T* gradient) const {
    const int64_t columns = sizes.columns();
    T sum = 0;
    for (int64_t q = 0; q < SIDE; ++q) sum += losses[q];
    *mean_loss = sum / (2 * sizes.prompts);
    for (int64_t i = 0; i < patterns; ++i) {
      UNROLL for (int64_t c = 0; c < columns; ++c) gradient[i * columns + c] = found[c * stride + i].one;
      UNROLL for (int64_t c = 0; c < columns; ++c) gradient[(patterns + i) * columns + c] = found[c * stride + i].two;
    }
    for (int64_t r = 2 * patterns; r < sizes.rows(); ++r)
      UNROLL for (int64_t c = 0; c < columns; ++c) gradient[r * columns + c] = (&found[c * stride].one)[r];
  }

 private:
  // What belongs to a step lies behind what belongs to patterns.
  T* step(int64_t k) const { return (k % 2 ? bottom : top) + (patterns + k / 2) * SIDE; }

  // What the query of every prompt says to inputs, outputs and steps. (Lines of all prompts first: reading one while it is being
  // written waits for memory.)
  void look_up(const Drawn& drawn, int64_t count) {
    const int64_t stride = this->stride, pairs = this->pairs;
    const bool moderate = this->moderate;
    Pair<T> *const lines = this->lines, *const both = this->both;
    T *const top = this->top, *const bottom = this->bottom;
    for (int64_t q = 0; q < count; ++q) {
      const T *pattern = &turned[drawn.query[q] * stride].one, *now = &turned[(patterns + drawn.step[q]) * stride].one;
      T* const line = &lines[q * stride].one;
      for (int64_t n = 0; n < 2 * stride; n += WIDTH<T>)
        at(line + n) = moderate ? at(pattern + n) * at(now + n) : at(pattern + n) + at(now + n);
    }
    for (int64_t q = 0; q < count; ++q) {
      const Pair<T>* const line = lines + q * stride;
      const Word* const place = drawn.place + q;
      UNROLL for (int64_t n = 0; n < pairs; ++n) both[place[n * SIDE]] = line[n];
    }
    const T* const from = &both->one;
    for (int64_t n = 0; n < pairs * SIDE; n += WIDTH<T>) {
      const Vector<T> one = at(from + 2 * n), two = at(from + 2 * n + WIDTH<T>);
      at(top + n) = parted<T, 0>(one, two, PLACES), at(bottom + n) = parted<T, 1>(one, two, PLACES);
    }
  }

  // To the columns of the table that the query asked for.
  void pull_back(const Drawn& drawn, int64_t count) {
    const int64_t stride = this->stride, pairs = this->pairs;
    Pair<T> *const lines = this->lines, *const both = this->both, *const found = this->found;
    T* const to = &both->one;
    for (int64_t n = 0; n < pairs * SIDE; n += WIDTH<T>) {
      const Vector<T> one = at(top + n), two = at(bottom + n);
      at(to + 2 * n) = paired<T, 0>(one, two, PLACES), at(to + 2 * n + WIDTH<T>) = paired<T, 1>(one, two, PLACES);
    }
    for (int64_t q = 0; q < count; ++q) {
      Pair<T>* const line = lines + q * stride;
      const Word* const place = drawn.place + q;
      UNROLL for (int64_t n = 0; n < pairs; ++n) line[n] = both[place[n * SIDE]];
    }
    for (int64_t q = 0; q < count; ++q) {
      const T* const line = &lines[q * stride].one;
      T *const pattern = &found[drawn.query[q] * stride].one, *const now = &found[(patterns + drawn.step[q]) * stride].one;
      for (int64_t n = 0; n < 2 * stride; n += WIDTH<T>) at(pattern + n) += at(line + n), at(now + n) += at(line + n);
    }
  }

  // Calls `visit(column, often, input, output)` for the columns of a step, by the place where their chains begin: where in `share`,
  // how many there are, the places of their patterns. The query's chain adds those of the steps before the one that is asked for.
  template <typename Visit>
  void each_column(int64_t k, const Row<T>& asked, Visit visit) const {
    const Row<T> more = asked > T(k) ? Row<T>{} + 1 : Row<T>{};
    const T *const examples = this->examples, *const chained = this->chained;
    const int64_t patterns = this->patterns, first = k * patterns, input = sizes.walked[k], output = sizes.walked[k + 1];
    for (int64_t p = 0; p < patterns; ++p)
      visit(first + p, row(chained, p) * more + row(examples, p), input + p, output + p);
  }

  // The first places again behind the last one; and what was added up there added to them.
  void repeat(T* numbers) const { std::copy_n(numbers, sizes.reach * SIDE, numbers + patterns * SIDE); }
  void gather(T* numbers) const {
    const T* const more = numbers + patterns * SIDE;
    for (int64_t p = 0, reach = sizes.reach; p < reach; ++p) row(numbers, p) += row(more, p);
  }

  // Attention of all columns, and by the places of their outputs, both before they are divided by their sum.
  void multiply(const Row<T>& asked) {
    T *const top = this->top, *const bottom = this->bottom, *const share = this->share, *const miss = this->miss;
    for (int64_t k = 0; k < steps; ++k) {
      const Row<T> now = row(this->now, k);
      each_column(k, asked, [&](int64_t column, const Row<T>& often, int64_t input, int64_t output) {
        const Row<T> weight = often * now * (row(top, input) * row(bottom, output));
        row(share, column) = weight, row(miss, output) += weight;
      });
    }
  }

  // The same from logits.
  void exponentiate(const Row<T>& asked) {
    const Row<T> never = Row<T>{} - std::numeric_limits<T>::infinity();
    T *const top = this->top, *const bottom = this->bottom, *const share = this->share, *const miss = this->miss;
    Row<T> most = never;
    for (int64_t k = 0; k < steps; ++k) {
      const Row<T> now = row(this->now, k);
      each_column(k, asked, [&](int64_t column, const Row<T>& often, int64_t input, int64_t output) {
        const Row<T> logit = often > 0 ? row(top, input) + row(bottom, output) + now : never;
        row(share, column) = logit, most = logit > most ? logit : most;
      });
    }
    for (int64_t k = 0; k < steps; ++k)
      each_column(k, asked, [&](int64_t column, const Row<T>& often, int64_t, int64_t output) {
        const Row<T> weight = often * exp_below_of<T>(row(share, column) - most);
        row(share, column) = weight, row(miss, output) += weight;
      });
  }

  // Attention and loss; then the gradient in the logits, s_i ((F - z)_i - sum_r s_r (F - z)_r), added up for inputs, outputs
  // (which have (F - z)_i in common) and steps, and divided by the number of prompts.
  void attend(const Drawn& drawn, int64_t count) {
    T *const top = this->top, *const bottom = this->bottom, *const miss = this->miss, *const share = this->share;
    T *const examples = this->examples, *const chained = this->chained;
    const Word* const begun = drawn.begun;
    const int64_t patterns = this->patterns, all = patterns + sizes.reach;
    const auto whole = [](const Row<Word>& of) { return __builtin_convertvector((Row<int32_t>)of, Row<T>); };
    const Row<T> start = whole(row(drawn.start, 0) / Word(SIDE)), end = whole(row(drawn.end, 0) / Word(SIDE));
    const Row<T> asked = whole(row(drawn.step, 0)), one = Row<T>{} + 1, none = {};
    for (int64_t k = 0; k < steps; ++k) row(now, k) = row(step(k), 0);
    repeat(top), repeat(bottom);
    for (int64_t p = 0; p < patterns; ++p)
      row(examples, p) = whole(row(begun, p)), row(chained, p) = start == T(p) ? one : none;
    for (int64_t p = 0; p < all; ++p) row(miss, p) = none;
    moderate ? multiply(asked) : exponentiate(asked);
    gather(miss);
    Row<T> total = {}, common = {}, squares = {};
    for (int64_t p = 0; p < patterns; ++p) total += row(miss, p);
    const Row<T> over = 1 / total;
    for (int64_t p = 0; p < patterns; ++p) {
      const Row<T> seen = row(miss, p) * over, less = end == T(p) ? seen - 1 : seen;
      row(bottom, p) = seen, row(miss, p) = less, common += seen * less, squares += less * less;
    }
    losses += whole(Drawn::numbers()) < T(count) ? squares : none;
    const T each = T(1) / sizes.prompts;
    for (int64_t p = 0; p < patterns; ++p) {
      const Row<T> pull = (row(miss, p) - common) * each;
      row(bottom, p) *= pull, row(miss, p) = pull * over;
    }
    repeat(miss);
    for (int64_t p = 0; p < all; ++p) row(top, p) = none;
    for (int64_t k = 0; k < steps; ++k) {
      Row<T> sum = {};
      each_column(k, asked, [&](int64_t column, const Row<T>&, int64_t input, int64_t output) {
        const Row<T> pull = row(share, column) * row(miss, output);
        row(top, input) += pull, sum += pull;
      });
      row(now, k) = sum;
    }
    gather(top);
    for (int64_t k = 0; k < steps; ++k) row(step(k), 0) = row(now, k);
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
