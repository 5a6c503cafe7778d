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
#include "products.h"
#include "scratch.h"
#include "threefry.h"
#include "vectors.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

constexpr int TILE = 4;             // patterns whose words are compared with the others together
constexpr int FEW = 32;             // patterns that are put in order in registers: their numbers take the last bits of words
constexpr int COUNTER = 4;          // bits in which examples that begin with one of few patterns are counted
constexpr int KEYS = 3;             // that are kept of every prompt
constexpr int USUAL_STEPS = 3;      // what is kept for each of so many is kept in registers
constexpr int MOST_STEPS = 1625;    // one less than patterns, at most (`network.MOST`)
constexpr Word SIGN = 1u << 31;     // makes of words numbers with a sign in the same order, which all processors compare

#define UNROLL_ALL _Pragma("GCC unroll 32")

struct Sizes {
  int64_t prompts, examples, patterns, steps;
  std::vector<int64_t> walked;  // places from the beginning of a chain to each of its states
  int64_t reach;                // the most of them, or of steps

  Sizes(int64_t prompts, int64_t examples, int64_t patterns, int64_t steps)
      : prompts(prompts), examples(examples), patterns(patterns), steps(steps) {
    for (int64_t k = 0; k <= steps; ++k) walked.push_back(k * (k + 1) / 2 % patterns);
    reach = std::max(steps, *std::max_element(walked.begin(), walked.end()));
  }
  int64_t rows() const { return 2 * patterns + steps; }
  int64_t columns() const { return patterns + steps; }
  int64_t around(int64_t place) const { return place < patterns ? place : place - patterns; }
};

// Comparisons that put N numbers in order, by Batcher (Knuth, Algorithm 5.2.2 M).
template <int N>
struct Network {
  int count = 0, lower[6 * N] = {}, upper[6 * N] = {};

  constexpr Network() {
    int half = 1;
    while (2 * half < N) half *= 2;
    for (int p = half; p; p /= 2)
      for (int q = half, r = 0, apart = p;; apart = q - p, q /= 2, r = p) {
        for (int n = 0; n + apart < N; ++n)
          if ((n & p) == r) lower[count] = n, upper[count++] = n + apart;
        if (q == p) break;
      }
  }
};

template <int N, typename V, int... PLACE>
__attribute__((always_inline)) inline void put_in_order(V* numbers, std::integer_sequence<int, PLACE...>) {
  constexpr Network<N> network;
  const auto exchange = [](V& lower, V& upper) {
    const V one = lower, other = upper;
    lower = one < other ? one : other, upper = one < other ? other : one;
  };
  (exchange(numbers[network.lower[PLACE]], numbers[network.upper[PLACE]]), ...);
}

// How often each of N numbers came up, in COUNTER bits for each.
template <int N>
class Counters {
  static constexpr int EACH = 32 / COUNTER, ALL = (N + EACH - 1) / EACH;  // counters in a word; words
  Row<Word> words[ALL] = {};

 public:
  static constexpr int64_t MOST = (1 << COUNTER) - 1;  // that can be counted

  explicit Counters(const Word* numbers, int64_t from, int64_t to) {
    for (int64_t n = from; n < to; ++n) {
      const Row<Word> number = row(numbers, n), one = (Row<Word>{} + 1) << number % EACH * COUNTER;
      UNROLL for (int c = 0; c < ALL; ++c) words[c] += number / EACH == c ? one : Row<Word>{};
    }
  }

  Row<Word> operator[](const Row<Word>& number) const {
    Row<Word> found = words[ALL - 1];
    UNROLL for (int c = ALL - 2; c >= 0; --c) found = number < Word((c + 1) * EACH) ? words[c] : found;
    return (found >> number % EACH * COUNTER) % Word(MOST + 1);
  }
};

// Tasks and examples of prompts side by side.
struct Drawn {
  const Sizes& sizes;
  const int64_t padded;         // patterns in whole tiles
  const int64_t apart;          // from prompt to prompt in arrays that have a row of patterns, then steps, for each
  Word* keys;                   // some of every prompt
  Word *words, *place;          // of every pattern: a random word, its place along the cycle
  Word* others;                 // patterns that examples begin with
  Word *cycle, *begun;          // of every place: where its pattern stands in such arrays, how many examples begin there
  Word *all_given, *all_steps;  // of every prompt: the pattern that the query's chain begins with, the step that is asked for
  const Word *given, *step;     // the same of prompts side by side
  alignas(LINE) Word start[SIDE], end[SIDE];  // the places where the query's chain begins, and of the label
  alignas(LINE) Word query[SIDE];             // the query's pattern

  Drawn(const Sizes& s, int64_t apart, Scratch& scratch)
      : sizes(s),
        padded(rounded_up(s.patterns, TILE)),
        apart(apart),
        keys(scratch.numbers<Word>(rounded_up(s.prompts, COUNT) * 2 * KEYS)),
        words(scratch.numbers<Word>((s.patterns + GROUP) * SIDE)),
        place(scratch.numbers<Word>(padded * SIDE)),
        others(scratch.numbers<Word>((s.examples + GROUP) * SIDE)),
        cycle(scratch.numbers<Word>(s.columns() * SIDE)),
        begun(scratch.numbers<Word>(s.patterns * SIDE)),
        all_given(scratch.numbers<Word>(rounded_up(s.prompts, SIDE))),
        all_steps(scratch.numbers<Word>(rounded_up(s.prompts, SIDE))) {
    for (int64_t n = 0, k = 0, i = 0; n < rounded_up(s.prompts, SIDE); ++n) {
      all_given[n] = i, all_steps[n] = k;
      if (++k == s.steps) k = 0, i = s.around(i + 1);
    }
    for (int64_t n = s.patterns; n < s.columns(); ++n) row(cycle, n) = numbers() * Word(apart) + Word(n);  // steps stay
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
    given = all_given + first, step = all_steps + first;
    draw_words(keys_of(0));
    draw_others(keys_of(1), keys_of(2), own);
    if (sizes.patterns > FEW || !order_few(own)) order(own);
    const Word* const cycle = this->cycle;
    const int64_t *const walked = sizes.walked.data(), patterns = sizes.patterns, apart = this->apart;
    for (int64_t q = 0; q < SIDE; ++q) {
      const int64_t now = start[q] + walked[step[q]], then = start[q] + walked[step[q] + 1];
      query[q] = cycle[(now < patterns ? now : now - patterns) * SIDE + q] - q * apart;
      end[q] = then < patterns ? then : then - patterns;
    }
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
    each_of_many(keys, 0, sizes.patterns,
                 [words](int64_t n, const Vector<Word>& one, const Vector<Word>& two) { row(words, n) = one ^ two ^ SIGN; });
    for (int64_t i = sizes.patterns; i < padded; ++i) row(words, i) = ~Row<Word>{} ^ SIGN;  // behind all others
  }

  // The place of a pattern is the rank of its random word (`random_cycle`), and at this place as many examples begin as with the
  // pattern. Words of few patterns are put in order without their last bits; false where these decide.
  template <int N = FEW>
  bool order_few(int64_t own) {
    if constexpr (N > TILE)
      if (padded < N) return order_few<N - TILE>(own);
    constexpr int64_t MOST = Counters<N>::MOST;
    const int64_t patterns = sizes.patterns, examples = sizes.examples;
    const Row<Word> given = row(this->given, 0), begin = numbers() * Word(apart);
    Word *const cycle = this->cycle, *const begun = this->begun;
    const Counters<N> counters(others, own, std::min(own + MOST, examples));
    Row<Word> found = {}, nearest = ~Row<Word>{};
    Row<int32_t> ordered[N];
    UNROLL_ALL for (int i = 0; i < N; ++i) ordered[i] = (Row<int32_t>)((row(words, i) & ~Word(FEW - 1)) | Word(i));
    put_in_order<N>(ordered, std::make_integer_sequence<int, Network<N>().count>{});
    UNROLL_ALL for (int p = 0; p < N; ++p) {
      if (p == patterns) break;
      const Row<Word> pattern = (Row<Word>)ordered[p] % FEW;
      row(cycle, p) = begin + pattern, row(begun, p) = pattern == given ? Row<Word>{} + Word(own) : counters[pattern];
      found = pattern == given ? Row<Word>{} + Word(p) : found;
      if (p) {
        const Row<Word> apart = (Row<Word>)ordered[p] - (Row<Word>)ordered[p - 1];
        nearest = apart < nearest ? apart : nearest;
      }
    }
    row(start, 0) = found;
    for (int64_t n = own + MOST; n < examples; n += MOST) {
      const Counters<N> more(others, n, std::min(n + MOST, examples));
      for (int64_t p = 0; p < patterns; ++p) row(begun, p) += more[row(cycle, p) - begin];
    }
    return !sum_of<Word>(nearest < FEW ? Row<Word>{} + 1 : Row<Word>{});
  }

  // The same of any patterns.
  void order(int64_t own) {
    draw_places();
    Word *const place = this->place, *const begun = this->begun, *const cycle = this->cycle, *const others = this->others;
    for (int64_t p = 0; p < sizes.patterns; ++p) row(begun, p) = Row<Word>{};
    for (int64_t i = 0; i < sizes.patterns; ++i)
      UNROLL for (int64_t q = 0; q < SIDE; ++q) cycle[place[i * SIDE + q]] = q * apart + i;
    for (int64_t q = 0; q < SIDE; ++q) begun[place[given[q] * SIDE + q]] = own, start[q] = place[given[q] * SIDE + q] / SIDE;
    for (int64_t n = own; n < sizes.examples; ++n) {
      row(others, n) = row(others, n) * Word(SIDE) + numbers();
      UNROLL for (int64_t q = 0; q < SIDE; ++q) ++begun[place[others[n * SIDE + q]]];
    }
  }

  // Places, said by where they stand in arrays that have a row for each of them.
  void draw_places() {
    Word *const words = this->words, *const place = this->place;
    const Row<Word> numbers = Drawn::numbers();
    for (int64_t i = 0; i < padded; i += TILE) {
      Row<Word> word[TILE], rank[TILE];
      UNROLL for (int r = 0; r < TILE; ++r) word[r] = row(words, i + r), rank[r] = Row<Word>{} + Word(i + r);
      for (int64_t j = 0; j < i; ++j) {
        const Row<Word> other = row(words, j);
        Row<Word> others_rank = row(place, j);
        UNROLL for (int r = 0; r < TILE; ++r) compare(other, word[r], others_rank, rank[r]);
        row(place, j) = others_rank;
      }
      UNROLL for (int r = 1; r < TILE; ++r)
        UNROLL for (int c = 0; c < r; ++c) compare(word[c], word[r], rank[c], rank[r]);
      UNROLL for (int r = 0; r < TILE; ++r) row(place, i + r) = rank[r];
    }
    for (int64_t i = 0; i < padded; ++i) row(place, i) = row(place, i) * Word(SIDE) + numbers;
  }

  // Where the first of two words is larger, it has one more before it, and the other one less.
  static void compare(const Row<Word>& first, const Row<Word>& second, Row<Word>& first_rank, Row<Word>& second_rank) {
    const auto wrong = (Row<int32_t>)first > (Row<int32_t>)second;
    first_rank -= (Row<Word>)wrong, second_rank += (Row<Word>)wrong;
  }

  // Patterns that lie `jax.random.randint(key, (examples,), 1, patterns)` after the given one, for all examples but the first.
  // Such a number is 1 and the rest of 128 random bits modulo M - 1; with 16 bits at a time a sum with that rest fits a word.
  void draw_others(const Keys& upper, const Keys& lower, int64_t first) {
    Word* const others = this->others;
    const Word span = sizes.patterns - 1, all = sizes.patterns;
    const float per_span = 1.0f / span;
    Vector<Word> power[4];  // 2^(32 n) modulo M - 1, and above it 2^(32 n + 16)
    int64_t rest = 1 % span;
    Word middle = 0;
    for (Vector<Word>& two : power) {
      const int64_t next = (rest << 16) % span;
      two = Vector<Word>{} + Word(next << 16 | rest), middle += (next + rest) << 15, rest = (next << 16) % span;
    }
    const Row<Word> next = row(given, 0) + Word(1);
    constexpr int MANY = BYTES == 64 ? 3 : 2;  // examples that are drawn together
    for (int64_t n = first; n < sizes.examples; n += MANY) {
      Words<2 * MANY> keys[2], one, two;
      UNROLL for (int q = 0; q < MANY; ++q) {
        keys[0][q] = upper.first, keys[1][q] = upper.second, keys[0][q + MANY] = lower.first, keys[1][q + MANY] = lower.second;
        two[q] = two[q + MANY] = Vector<Word>{} + Word(n + q);
      }
      threefry(keys[0], keys[1], one, two);
      UNROLL for (int q = 0; q < MANY; ++q) {
        const Row<Word> sum = middle + times_halves(one[q], power[3]) + times_halves(two[q], power[2]) +
                              times_halves(one[q + MANY], power[1]) + times_halves(two[q + MANY], power[0]);
        // The quotient, rounded down, or one less: floats are off by less than a quarter of 1, as it is below 2^19.
        const Row<float> times = __builtin_convertvector((Row<int32_t>)sum, Row<float>) * per_span - 0.25f;
        const Row<Word> left = sum - span * (Row<Word>)__builtin_convertvector(times, Row<int32_t>);
        row(others, n + q) = less(next + less(left, span), all);
      }
    }
  }

  // The lower 16 bits of words, less 2^15, times the lower ones of factors, and the same of the upper ones, together.
  static Vector<Word> times_halves(const Vector<Word>& words, const Vector<Word>& factors) {
    const Vector<Word> centred = words ^ Word(0x80008000);
#if defined(__AVX512BW__)
    return (Vector<Word>)_mm512_madd_epi16((__m512i)centred, (__m512i)factors);
#elif defined(__AVX2__) && !defined(__AVX512F__)
    return (Vector<Word>)_mm256_madd_epi16((__m256i)centred, (__m256i)factors);
#elif defined(__SSE2__) && !defined(__AVX__)
    return (Vector<Word>)_mm_madd_epi16((__m128i)centred, (__m128i)factors);
#else
    using Wholes = Vector<int32_t>;
    const Wholes lower = (Wholes)(centred << 16) >> 16, upper = (Wholes)centred >> 16;
    return (Vector<Word>)(lower * (Wholes)(factors & Word(0xFFFF)) + upper * (Wholes)(factors >> 16));
#endif
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

// A pair of floats that is moved as one number; and several of them, from places one after the other: the instruction for that
// is slower.
typedef double Bits __attribute__((may_alias));

template <int... PLACE>
inline Vector<Bits> looked_up(const Bits* from, const Word* places, std::integer_sequence<int, PLACE...>) {
  return Vector<Bits>{from[places[PLACE]]...};
}

// Of pairs the first or the second numbers; and pairs of them, the first half or the second.
template <typename T, int WHICH, int... PLACE>
inline Vector<T> parted(Vector<T> a, Vector<T> b, std::integer_sequence<int, PLACE...>) {
  return shuffled<(2 * PLACE + WHICH)...>(a, b);
}
template <typename T, int WHICH, int... PLACE>
inline Vector<T> paired(Vector<T> a, Vector<T> b, std::integer_sequence<int, PLACE...>) {
  return shuffled<int((WHICH * WIDTH<T> + PLACE) / 2 + PLACE % 2 * WIDTH<T>)...>(a, b);
}

// A row for each of some steps: in registers where their number is known, otherwise in memory.
template <typename T, int STEPS>
struct BySteps {
  Row<T> rows[STEPS];
  explicit BySteps(T*) {}
  Row<T>& operator[](int64_t k) { return rows[k]; }
};
template <typename T>
struct BySteps<T, 0> {
  T* rows;
  explicit BySteps(T* rows) : rows(rows) {}
  Row<T>& operator[](int64_t k) { return row(rows, k); }
};

// Loss and gradient of a table, added up over prompts side by side. A logit is a sum of six numbers of the table. Where these are
// moderate, a product of six exponentials is the same, neither too large nor too small: then those of the table are looked up.
template <typename T>
class Layer {
  using Whole = typename Elementary<T>::Whole;
  static constexpr T MODERATE = -Elementary<T>::LOWEST / 8;
  static constexpr auto PLACES = std::make_integer_sequence<int, WIDTH<T>>{};
  static constexpr auto HALF = std::make_integer_sequence<int, SIDE / 2>{};
  const Sizes& sizes;
  const int64_t patterns, steps, pairs;
  const int64_t stride, width;  // pairs of a column of the table, and of a row, in whole registers
  T* flat;                      // the table as it lies, with room behind it
  Pair<T>* by_rows;             // the table, later its gradient, in pairs
  Pair<T> *turned, *found;      // the same by columns: a query asks for two of them
  Pair<T>* lines;               // these put together for every prompt
  // By place: what belongs to inputs and outputs of columns (then its gradient), F - z, and how many columns begin there.
  // Behind the last place the first ones come again, as far as a chain goes, so that columns need not turn there.
  T *top, *bottom, *miss, *often;
  T* by_steps;  // what is kept for each step
  Row<T> losses;
  bool moderate;

 public:
  Layer(const Sizes& s, Scratch& scratch)
      : sizes(s),
        patterns(s.patterns),
        steps(s.steps),
        pairs(patterns + (steps + 1) / 2),
        stride(rounded_up(2 * pairs, WIDTH<T>) / 2),
        width(rounded_up(s.columns(), WIDTH<T>)),
        flat(scratch.numbers<T>((s.rows() + 1) * s.columns() + width + WIDTH<T>)),
        by_rows(scratch.numbers<Pair<T>>(stride * width)),
        turned(scratch.numbers<Pair<T>>(width * stride)),
        found(scratch.numbers<Pair<T>>(width * stride)),
        lines(scratch.zeros<Pair<T>>(SIDE * stride)),
        top(scratch.numbers<T>((pairs + patterns) * SIDE)),
        bottom(scratch.numbers<T>((pairs + patterns) * SIDE)),
        miss(scratch.numbers<T>(3 * patterns * SIDE)),
        often(scratch.numbers<T>((1 + steps) * around() * SIDE)),
        by_steps(scratch.numbers<T>(4 * steps * SIDE)) {}

  int64_t apart() const { return stride; }

  void begin(const T* table) {
    const int64_t columns = sizes.columns(), size = sizes.rows() * columns, whole = size / WIDTH<T> * WIDTH<T>;
    losses = Row<T>{};
    std::fill_n(found, columns * stride, Pair<T>{});
    T* const flat = this->flat;
    std::fill_n(std::copy(table + whole, table + size, flat + whole), columns + width, T(0));
    Vector<Whole> fine = ~Vector<Whole>{};
    const auto exponentials = [flat, &fine](const T* from, int64_t n) {
      Vector<T> some[] = {at(from + n)};
      fine &= (some[0] <= MODERATE) & (some[0] >= -MODERATE);
      to_exp<T>(some), at(flat + n) = some[0];
    };
    for (int64_t n = 0; n < whole; n += WIDTH<T>) exponentials(table, n);
    exponentials(flat, whole);
    moderate = sum_of<Whole>(fine) == -WIDTH<T>;
    if (!moderate) std::copy_n(table, size, flat);
    for (int64_t n = 0; n < pairs; ++n) {
      const T *const one = flat + row_of(n, 0) * columns, *const two = flat + row_of(n, 1) * columns;
      T* const to = &by_rows[n * width].one;
      for (int64_t c = 0; c < columns; c += WIDTH<T>) {
        const Vector<T> first = at(one + c), second = at(two + c);
        at(to + 2 * c) = paired<T, 0>(first, second, PLACES), at(to + 2 * c + WIDTH<T>) = paired<T, 1>(first, second, PLACES);
      }
    }
    turn_pairs({by_rows, width}, {turned, stride}, pairs, columns);
  }

  // The first `count` of the prompts.
  void add(const Drawn& drawn, int64_t count) {
    look_up(drawn, count);
    steps == USUAL_STEPS ? attend<USUAL_STEPS>(drawn, count) : attend<0>(drawn, count);
    pull_back(drawn, count);
  }

  void mean(T* mean_loss, T* gradient) const {
    const int64_t columns = sizes.columns();
    T sum = 0;
    for (int64_t q = 0; q < SIDE; ++q) sum += losses[q];
    *mean_loss = sum / (2 * sizes.prompts);
    turn_pairs({found, stride}, {by_rows, width}, columns, pairs);
    const int64_t size = sizes.rows() * columns;
    // Rows are written in whole registers, and the next one writes over what is too much; behind the last ones is no room.
    for (int64_t r = 0; r < sizes.rows(); ++r) {
      const int64_t step = r - 2 * patterns, n = step < 0 ? r < patterns ? r : r - patterns : patterns + step / 2;
      const bool second = step < 0 ? r >= patterns : step % 2;
      const bool last = r * columns + width > size;
      const T* const from = &by_rows[n * width].one;
      T* const to = last ? flat : gradient + r * columns;
      for (int64_t c = 0; c < columns; c += WIDTH<T>) {
        const Vector<T> one = at(from + 2 * c), two = at(from + 2 * c + WIDTH<T>);
        at(to + c) = second ? parted<T, 1>(one, two, PLACES) : parted<T, 0>(one, two, PLACES);
      }
      if (last) std::copy_n(flat, columns, gradient + r * columns);
    }
  }

 private:
  // The row of the table that is the first or the second of pairs.
  int64_t row_of(int64_t pair, int64_t which) const {
    return pair < patterns ? pair + which * patterns : 2 * pair + which;
  }

  static void turn_pairs(Matrix<const Pair<T>> a, Matrix<Pair<T>> b, int64_t rows, int64_t columns) {
    if constexpr (sizeof(Pair<T>) == sizeof(double)) {
      turn<double>({(const double*)a.at, a.stride}, {(double*)b.at, b.stride}, rows, columns);
    } else {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) b.row(c)[r] = a.row(r)[c];
    }
  }

  // What belongs to a step lies behind what belongs to patterns.
  T* step(int64_t k) const { return (k % 2 ? bottom : top) + (patterns + k / 2) * SIDE; }

  // What the query of every prompt says to inputs, outputs and steps. (Lines of all prompts first: reading one while it is being
  // written waits for memory.)
  void look_up(const Drawn& drawn, int64_t count) {
    const int64_t stride = this->stride, pairs = this->pairs;
    const bool moderate = this->moderate;
    Pair<T>* const lines = this->lines;
    T *const top = this->top, *const bottom = this->bottom;
    const T *const first = &turned->one, *const last = &turned[patterns * stride].one;
    const Word *const query = drawn.query, *const step = drawn.step;
    for (int64_t q = 0; q < count; ++q) {
      const T *pattern = first + query[q] * 2 * stride, *now = last + step[q] * 2 * stride;
      T* const line = &lines[q * stride].one;
      for (int64_t n = 0; n < 2 * stride; n += WIDTH<T>)
        at(line + n) = moderate ? at(pattern + n) * at(now + n) : at(pattern + n) + at(now + n);
    }
    const Word* const cycle = drawn.cycle;
    for (int64_t n = 0; n < pairs; ++n) {
      if constexpr (sizeof(Pair<T>) == sizeof(Bits)) {
        const Bits* const from = (const Bits*)lines;
        const Vector<Bits> one = looked_up(from, cycle + n * SIDE, HALF);
        const Vector<Bits> two = looked_up(from, cycle + n * SIDE + SIDE / 2, HALF);
        at(top + n * SIDE) = parted<T, 0>((Vector<T>)one, (Vector<T>)two, PLACES);
        at(bottom + n * SIDE) = parted<T, 1>((Vector<T>)one, (Vector<T>)two, PLACES);
      } else {
        for (int64_t q = 0; q < SIDE; ++q) {
          const Pair<T> both = lines[cycle[n * SIDE + q]];
          top[n * SIDE + q] = both.one, bottom[n * SIDE + q] = both.two;
        }
      }
    }
  }

  // To the columns of the table that the query asked for.
  void pull_back(const Drawn& drawn, int64_t count) {
    const int64_t stride = this->stride, pairs = this->pairs;
    Pair<T> *const lines = this->lines, *const found = this->found;
    const T *const top = this->top, *const bottom = this->bottom;
    const Word* const cycle = drawn.cycle;
    for (int64_t n = 0; n < pairs; ++n) {
      if constexpr (sizeof(Pair<T>) == sizeof(Bits)) {
        Bits* const to = (Bits*)lines;
        const Vector<T> one = at(top + n * SIDE), two = at(bottom + n * SIDE);
        const auto first = (Vector<Bits>)paired<T, 0>(one, two, PLACES), second = (Vector<Bits>)paired<T, 1>(one, two, PLACES);
        UNROLL for (int64_t q = 0; q < SIDE / 2; ++q) to[cycle[n * SIDE + q]] = first[q];
        UNROLL for (int64_t q = 0; q < SIDE / 2; ++q) to[cycle[n * SIDE + SIDE / 2 + q]] = second[q];
      } else {
        for (int64_t q = 0; q < SIDE; ++q) lines[cycle[n * SIDE + q]] = {top[n * SIDE + q], bottom[n * SIDE + q]};
      }
    }
    alignas(LINE) Word column[SIDE];
    row(column, 0) = row(drawn.query, 0) * Word(2 * stride);
    const int64_t steps = this->steps, some = std::min(steps, count), apart = 2 * stride;
    for (int64_t n = 0; n < apart; n += WIDTH<T>)
      for (int64_t begin = 0; begin < some; ++begin) {
        T *const now = &found[(patterns + drawn.step[begin]) * stride].one + n, *const pattern = &found->one + n;
        const T* line = &lines[begin * stride].one + n;
        Vector<T> sum = at(now);
        for (int64_t q = begin; q < count; q += steps, line += steps * apart) {
          const Vector<T> here = at(line);
          sum += here, at(pattern + column[q]) += here;
        }
        at(now) = sum;
      }
  }

  // How many places there are with those that come again, and where one of them lies behind the first.
  int64_t around() const { return patterns + sizes.reach; }
  Row<T> behind_first(const Row<T>& place) const {
    return place < T(sizes.reach) ? place + T(patterns) : place >= T(around()) ? place - T(patterns) : place;
  }

  // What exponentials make of the columns of a step.
  T* weights(int64_t k) const { return often + (1 + k) * around() * SIDE; }

  // The first places again behind the last one.
  void repeat(T* numbers) const {
    const int64_t reach = sizes.reach;
    T* const behind = numbers + patterns * SIDE;
    for (int64_t p = 0; p < reach; ++p) row(behind, p) = row(numbers, p);
  }

  static Row<T> whole(const Row<Word>& of) { return __builtin_convertvector((Row<int32_t>)of, Row<T>); }

  // From logits: columns are there as often as their exponentials say, and nothing else is said of them.
  template <typename Steps>
  void exponentiate(const Drawn& drawn, Steps& now) {
    const Row<T> start = whole(row(drawn.start, 0)), asked = whole(row(drawn.step, 0));
    const Row<T> never = Row<T>{} - std::numeric_limits<T>::infinity();
    Row<T> most = never;
    const auto each_column = [&](auto visit) {
      for (int64_t k = 0; k < steps; ++k) {
        const Row<T> more = asked > T(k) ? Row<T>{} + 1 : Row<T>{};
        for (int64_t p = 0; p < patterns; ++p)
          visit(k, p, row(often, p) + (start == T(p) ? more : Row<T>{}), row(weights(k), p));
      }
    };
    each_column([&](int64_t k, int64_t p, const Row<T>& many, Row<T>& logit) {
      const Row<T> sum = row(top, p + sizes.walked[k]) + row(bottom, p + sizes.walked[k + 1]) + now[k];
      logit = many > 0 ? sum : never, most = logit > most ? logit : most;
    });
    each_column([&](int64_t, int64_t, const Row<T>& many, Row<T>& weight) {
      weight = many * exp_below_of<T>(weight - most);
    });
    for (int64_t k = 0; k < steps; ++k) repeat(weights(k)), now[k] = Row<T>{} + 1;
    std::fill_n(top, around() * SIDE, T(1)), std::fill_n(bottom, around() * SIDE, T(1));
  }

  // Attention and loss; then the gradient in the logits, s_i ((F - z)_i - sum_r s_r (F - z)_r), added up for inputs, outputs
  // (which have (F - z)_i in common) and steps, and divided by the number of prompts.
  template <int STEPS>
  void attend(const Drawn& drawn, int64_t count) {
    const int64_t steps = STEPS ? STEPS : this->steps, patterns = this->patterns, from = sizes.reach, to = around();
    T *const top = this->top, *const bottom = this->bottom, *const miss = this->miss, *const often = this->often;
    const Row<T> none = {}, before = none + T(from), start = whole(row(drawn.start, 0)), asked = whole(row(drawn.step, 0));
    // Of every step: what belongs to it, its gradient, where the query's chain has its column, by input and by output.
    BySteps<T, STEPS> now(by_steps), sums(by_steps + steps * SIDE);
    BySteps<T, STEPS> chain_in(by_steps + 2 * steps * SIDE), chain_out(by_steps + 3 * steps * SIDE);
    const T *inputs[STEPS ? STEPS : MOST_STEPS], *outputs[STEPS ? STEPS : MOST_STEPS];
    for (int64_t k = 0; k < steps; ++k) now[k] = row(step(k), 0), sums[k] = none;
    for (int64_t p = 0; p < patterns; ++p) row(often, p) = whole(row(drawn.begun, p));
    repeat(top), repeat(bottom), repeat(often);
    if (!moderate) exponentiate(drawn, now);
    for (int64_t k = 0; k < steps; ++k) {
      const int64_t in = sizes.walked[k], out = sizes.walked[k + 1];
      const T* const begun = moderate ? often : weights(k);
      inputs[k] = begun - in * SIDE, outputs[k] = begun - out * SIDE;
      const auto there = asked > (moderate ? T(k) : T(steps));
      chain_in[k] = there ? behind_first(start + T(in)) : none, chain_out[k] = there ? behind_first(start + T(out)) : none;
    }
    Row<T> total = {}, common = {}, squares = {}, place = before;
    for (int64_t o = from; o < to; ++o, place += 1) {
      Row<T> sum = {};
      for (int64_t k = 0; k < steps; ++k) {
        Row<T> many = row(outputs[k], o);
        if (k + 1 < steps) many = chain_out[k] == place ? many + 1 : many;
        sum += now[k] * (many * row(top, o - k - 1));
      }
      sum *= row(bottom, o), total += sum, row(miss, o) = sum;
    }
    const Row<T> over = 1 / total, end = behind_first(whole(row(drawn.end, 0)));
    place = before;
    for (int64_t o = from; o < to; ++o, place += 1) {
      const Row<T> seen = row(miss, o) * over, less = end == place ? seen - 1 : seen;
      row(miss, o) = seen, common += seen * less, squares += less * less;
    }
    losses += whole(Drawn::numbers()) < T(count) ? squares : none;
    const T each = T(1) / sizes.prompts;
    place = before;
    for (int64_t o = from; o < to; ++o, place += 1) {
      const Row<T> seen = row(miss, o), pull = ((end == place ? seen - 1 : seen) - common) * each;
      row(miss, o) = row(bottom, o) * (pull * over), row(bottom, o < patterns ? o : o - patterns) = seen * pull;
    }
    for (int64_t k = 0; k < steps; ++k) row(miss, to + k) = row(miss, from + k);
    place = before;
    for (int64_t i = from; i < to; ++i, place += 1) {
      const Row<T> here = row(top, i);
      Row<T> sum = {};
      for (int64_t k = 0; k < steps; ++k) {
        Row<T> many = row(inputs[k], i);
        if (k + 1 < steps) many = chain_in[k] == place ? many + 1 : many;
        const Row<T> pull = many * row(miss, i + k + 1);
        sum += now[k] * pull, sums[k] += here * pull;
      }
      row(top, i < patterns ? i : i - patterns) = here * sum;
    }
    for (int64_t k = 0; k < steps; ++k) row(step(k), 0) = now[k] * sums[k];
  }
};

// Given: table, key of the prompts, examples with the query's pattern. Found: loss, its gradient. Lanes come first in all.
template <typename T>
void fresh(Call call) {
  const int64_t rows = call.last(0, 2), columns = call.last(0, 1), patterns = rows - columns, prompts = call.number("prompts");
  const Sizes sizes(prompts, call.number("examples"), patterns, columns - patterns);
  Scratch scratch;
  Layer<T> layer(sizes, scratch);
  Drawn drawn(sizes, layer.apart(), scratch);
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

KERNEL(chain_fresh,
        "table T[row column], key u4[2], own i4[] "
        "-> loss T[], gradient T[row column] "
        "where patterns == row - column, patterns > 1, patterns <= 1625, column > patterns",
        fresh)
