// What comes out for test prompts at every length (`testing.outcome`), one prompt after another.
//
// Columns are in the order of the JAX form, and so are the sums over those with the same output: where as many columns with the
// same attention give two outputs, the same one wins.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "elementary.h"
#include "kernel.h"
#include "products.h"
#include "scratch.h"
#include "vectors.h"

// What W says to test columns; a row for every pattern and step of a query. Those for noise are filled up with zeros.
template <typename T>
struct Scores {
  const T *into, *out, *place, *into_noise, *out_noise;
};

// What is drawn for a prompt, whatever its length.
template <typename T>
struct Drawn {
  const int32_t* maps;
  const double *reached, *chance;
  const float* normal;
  const T* ties;
  int64_t query;
};

template <typename T>
class Test {
  static constexpr int64_t W = WIDTH<T>;
  const int64_t patterns, steps, states, free, most;
  const bool spread;
  const T norm;  // of noise
  Scores<T> scores;
  Drawn<T> drawn;
  const int64_t rows, stride;  // of noise: one for every state of an example; its numbers, as many as fill registers
  // Noise with what makes its norm the right one, and what is said to it as an input and as an output, by step.
  T *ones, *normal, *scale, *into_noisy, *out_noisy;
  T *share, *sums;  // by column its logit, then its attention; by pattern what its columns have of it
  // States of the examples, the right ones, those of the chain of thought, and those whose products with noise are known.
  int32_t *chains, *asked, *own, *heard;

  const T* filled_up(Scratch& scratch, const T* rows) const {
    T* found = scratch.zeros<T>(patterns * steps * stride);
    for (int64_t r = 0; r < patterns * steps; ++r) std::copy_n(rows + r * free, free, found + r * stride);
    return found;
  }

 public:
  Test(Scratch& scratch, int64_t patterns, int64_t steps, int64_t free, int64_t most, bool spread, T norm,
       const Scores<T>& given)
      : patterns(patterns),
        steps(steps),
        states(steps + 1),
        free(free),
        most(most),
        spread(spread),
        norm(norm),
        scores(given),
        rows(rounded_up(most * states, W)),
        stride(rounded_up(free, W)) {
    ones = scratch.zeros<T>(stride);
    std::fill_n(ones, free, T(1));
    scores.into_noise = filled_up(scratch, given.into_noise), scores.out_noise = filled_up(scratch, given.out_noise);
    normal = scratch.zeros<T>(rows * free + W), scale = scratch.numbers<T>(rows);  // rows are read with what follows them
    into_noisy = scratch.numbers<T>(steps * rows), out_noisy = scratch.numbers<T>(steps * rows);
    share = scratch.numbers<T>(rounded_up(most * steps + steps, W)), sums = scratch.numbers<T>(patterns);
    chains = scratch.numbers<int32_t>(most * states);
    asked = scratch.numbers<int32_t>(states), own = scratch.numbers<int32_t>(states), heard = scratch.numbers<int32_t>(steps);
  }

  void begin(const Drawn<T>& prompt) {
    drawn = prompt;
    std::copy_n(drawn.normal, most * states * free, normal);
    for (int64_t row = 0; row < rows; row += W) {
      T squares[W];
      at(squares) = along(row, [this](const Vector<T>& here, int64_t f) { return here * here * at(ones + f); });
      for (int64_t q = 0; q < W; ++q) scale[row + q] = squares[q] > 0 ? norm / std::sqrt(squares[q]) : 0;
    }
    std::fill_n(heard, steps, -1);
    asked[0] = own[0] = drawn.query;
    for (int64_t k = 0; k < steps; ++k) asked[k + 1] = drawn.maps[k * patterns + asked[k]];
  }

  // With so many examples, of which some begin with the query's own pattern. Found: by step whether the chain of thought errs
  // and the attention on matching columns, whether in-context learning errs; whether the vote does, by step and in one go.
  void at_length(int64_t length, int64_t matching, T* found) {
    walk(length, matching);
    for (int64_t k = 0; k < steps; ++k) {
      found[steps + k] = reason(length, k);
      found[k] = own[k + 1] != asked[k + 1];
    }
    found += 2 * steps;
    *found++ = answer(length) != asked[steps];
    for (int64_t k = 0, state = asked[0]; k < steps; ++k) {
      state = vote(length, k, k + 1, state, drawn.ties + k * patterns);
      *found++ = state != asked[k + 1];
    }
    *found = vote(length, 0, steps, asked[0], drawn.ties + steps * patterns) != asked[steps];
  }

 private:
  // The chains of the examples.
  void walk(int64_t length, int64_t matching) {
    for (int64_t e = 0; e < length; ++e) {
      const double* chance = drawn.chance + e * states;
      const int64_t other = spread ? 1 + int64_t((patterns - 1) * chance[0]) : patterns / 2;
      int32_t* chain = chains + e * states;
      chain[0] = e < matching ? drawn.query : (drawn.query + other) % patterns;
      for (int64_t k = 0; k < steps; ++k) {
        const double* reached = drawn.reached + (k * patterns + chain[k]) * patterns;
        int32_t next = 0;
        for (int64_t j = 0; j < patterns - 1; ++j) next += chance[k + 1] >= reached[j];
        chain[k + 1] = next;
      }
    }
  }

  // Of some rows of noise the sums of what `term` makes of their numbers, which are zeros beyond the end of a row.
  template <typename Term>
  Vector<T> along(int64_t row, Term term) const {
    Vector<T> sums[W] = {};
    UNROLL for (int64_t q = 0; q < W; ++q)
      for (int64_t f = 0; f < stride; f += W) sums[q] += term(at(normal + (row + q) * free + f), f);
    return sums_of<T>(sums);
  }

  // What the query of a step says to noise. Longer prompts come first: their products are those of shorter ones.
  void hear(int64_t length, int64_t k) {
    if (heard[k] == own[k]) return;
    heard[k] = own[k];
    const int64_t asking = (own[k] * steps + k) * stride;
    const T *into = scores.into_noise + asking, *out = scores.out_noise + asking;
    for (int64_t row = 0; row < length * states; row += W) {
      const auto said = [&](const T* to) {
        return along(row, [to](const Vector<T>& here, int64_t f) { return here * at(to + f); }) * at(scale + row);
      };
      at(into_noisy + k * rows + row) = said(into), at(out_noisy + k * rows + row) = said(out);
    }
  }

  // A step of greedy chain of thought: its state, and the attention on columns of the same pattern and step.
  T reason(int64_t length, int64_t k) {
    const int64_t now = own[k], asking = now * steps + k;
    const T *into = scores.into + asking * patterns, *out = scores.out + asking * patterns;
    const T* place = scores.place + asking * steps;
    hear(length, k);
    const T *into_noisy = this->into_noisy + k * rows, *out_noisy = this->out_noisy + k * rows;
    for (int64_t e = 0, column = 0, state = 0; e < length; ++e, ++state)
      for (int64_t r = 0; r < steps; ++r, ++column, ++state)
        share[column] = into[chains[state]] + out[chains[state + 1]] + place[r] + (into_noisy[state] + out_noisy[state + 1]);
    T* earlier = share + length * steps;
    for (int64_t r = 0; r < k; ++r) earlier[r] = into[own[r]] + out[own[r + 1]] + place[r];
    attend(length * steps + k);
    T matched = 0;
    std::fill_n(sums, patterns, T(0));
    for (int64_t e = 0; e < length; ++e) {
      const int32_t* chain = chains + e * states;
      const T* own_share = share + e * steps;
      for (int64_t r = 0; r < steps; ++r) sums[chain[r + 1]] += own_share[r];
      matched += own_share[k] * T(chain[k] == now);  // no number where attention is none
    }
    for (int64_t r = 0; r < k; ++r) sums[own[r + 1]] += earlier[r];
    own[k + 1] = largest();
    return matched;
  }

  // In-context learning, which hears the same noise as the first step.
  int64_t answer(int64_t length) {
    const int64_t asking = drawn.query * steps;
    const T *into = scores.into + asking * patterns, *out = scores.out + asking * patterns;
    const T* place = scores.place + asking * steps;
    for (int64_t e = 0; e < length; ++e) {
      const int64_t first = e * states, last = first + steps;
      share[e * steps] = into[chains[first]] + out[chains[last]] + place[0] + (into_noisy[first] + out_noisy[last]);
      std::copy_n(place + 1, steps - 1, share + e * steps + 1);
    }
    attend(length * steps);
    std::fill_n(sums, patterns, T(0));
    for (int64_t e = 0; e < length; ++e) sums[chains[e * states + steps]] += share[e * steps];
    return largest();
  }

  // The most frequent later state of examples that are at a state.
  int64_t vote(int64_t length, int64_t from, int64_t to, int64_t state, const T* ties) {
    for (int64_t i = 0; i < patterns; ++i) sums[i] = T(0.5) * ties[i];
    for (int64_t e = 0; e < length; ++e) sums[chains[e * states + to]] += chains[e * states + from] == state;
    return largest();
  }

  int64_t largest() const { return std::max_element(sums, sums + patterns) - sums; }

  // Softmax.
  void attend(int64_t columns) {
    const int64_t all_columns = rounded_up(columns, W);
    std::fill(share + columns, share + all_columns, -std::numeric_limits<T>::infinity());
    Vector<T> many = at(share), total = {};
    for (int64_t c = W; c < all_columns; c += W) many = at(share + c) > many ? at(share + c) : many;
    T parts[W];
    at(parts) = many;
    const T most_said = *std::max_element(parts, parts + W);
    for (int64_t c = 0; c < all_columns; c += W) total += at(share + c) = exp_below<T>(at(share + c) - most_said);
    const T sum = sum_of<T>(total);
    for (int64_t c = 0; c < all_columns; c += W) at(share + c) /= sum;
  }
};

// Given: scores, then what is drawn for every prompt; the lengths, rising, and how many of their examples match; the norm of
// noise. Found: a row of numbers for every prompt and length.
template <typename T>
void outcomes(Call call) {
  const int64_t patterns = call.shape(0)[0], steps = call.shape(0)[1], free = call.last(3, 1), prompts = call.shape(7)[0],
                most = call.shape(7)[1], lengths = call.count_given(11), size = 3 * steps + 2;
  Scratch scratch;
  Test<T> test(scratch, patterns, steps, free, most, call.number("spread"), *call.given<T>(13),
               {call.given<T>(0), call.given<T>(1), call.given<T>(2), call.given<T>(3), call.given<T>(4)});
  T* found = call.found<T>(0);
  for (int64_t p = 0; p < prompts; ++p) {
    test.begin({call.given<int32_t>(5) + p * steps * patterns, call.given<double>(6) + p * steps * patterns * patterns,
                call.given<double>(7) + p * most * (steps + 1), call.given<float>(8) + p * most * (steps + 1) * free,
                call.given<T>(9) + p * (steps + 1) * patterns, call.given<int32_t>(10)[p]});
    for (int64_t n = lengths - 1; n >= 0; --n)
      test.at_length(call.given<int32_t>(11)[n], call.given<int32_t>(12)[n], found + (p * lengths + n) * size);
  }
}

KERNEL(chain_outcomes,
        "into T[n k n], out T[n k n], place T[n k k], into_noise T[n k free], out_noise T[n k free], maps i4[prompt k n], "
        "reached f8[prompt k n n], chance f8[prompt most state], normal f4[prompt most noise], ties T[prompt state n], "
        "query i4[prompt], lengths i4[length], matching i4[length], noise_norm T[] "
        "-> found T[prompt length number] "
        "where state == k + 1, noise == state * free, number == 3 * k + 2, free >= 0, noise >= 0",
        outcomes)
