// Loss and gradient of the layer on fresh prompts: what `Layer.objective` and its derivative give on what `Contexts.draw` makes
// of a key, in the basis of patterns, for tasks with one pattern per class.
//
// A token has three coordinates: a relevant pattern, an irrelevant one and the label. Logits are sums of three numbers, and so are
// gradients; only the perceptron and the folding of weights are products. Prompts lie side by side, one in each place of a
// register.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "elementary.h"
#include "kernel.h"
#include "products.h"
#include "scratch.h"
#include "threefry.h"
#include "vectors.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

struct Sizes {
  int64_t prompts, room, relevant, irrelevant, heads, neurons, keys, values;

  int64_t dim() const { return relevant + irrelevant + 1; }
};

// What a run trains on.
template <typename T>
struct Given {
  const T *query, *key, *value, *hidden, *votes;
  const int64_t* tasks;
  int64_t trained, length;
  T fraction, bound, norm;
  bool logistic;
};

// Prompts side by side. The place of a pattern is that of prompt q in an array with rows of `stride` numbers. Most contexts hold
// one of the two patterns that the task decides by; the `others` are listed, and what only they need is drawn for them alone.
template <typename T>
struct Drawn {
  const Sizes& sizes;
  const int64_t stride;
  int64_t many;                                 // of the others
  T *chance, *strength, *label, *other_labels;  // of every context; the first rows of `chance` are the roles
  int32_t *irrelevant, *others, *other_places;
  alignas(LINE) int32_t own[SIDE], opposite[SIDE];  // places of the patterns of the task
  int64_t query[SIDE], query_irrelevant[SIDE];
  alignas(LINE) T query_strength[SIDE], target[SIDE];

  Drawn(const Sizes& s, int64_t stride, Scratch& scratch)
      : sizes(s),
        stride(stride),
        chance(scratch.numbers<T>((4 * (s.room + 1) + GROUP) * SIDE)),
        strength(scratch.numbers<T>(s.room * SIDE)),
        label(scratch.numbers<T>(s.room * SIDE)),
        other_labels(scratch.numbers<T>((s.room + 1) * SIDE)),
        irrelevant(scratch.numbers<int32_t>(s.room * SIDE)),
        others(scratch.numbers<int32_t>((s.room + 1) * SIDE)),
        other_places(scratch.numbers<int32_t>((s.room + 1) * SIDE)) {}

  void draw(const Given<T>& given, const Word* key, int64_t offset, int64_t first) {
    const int64_t columns = sizes.room + 1;
    const Keys keys = folded(key, first);
    T* const chance = this->chance;
    const auto keep = [chance](int64_t n, const Vector<Word>& one, const Vector<Word>& two) {
      row(chance, n) = uniform<T>(one, two);
    };
    each_of_many(keys, 0, sizes.room, keep), each_of_many(keys, 2 * columns, 4 * columns, keep);
    alignas(LINE) int32_t begin[SIDE];
    for (int64_t q = 0; q < SIDE; ++q) {
      const int64_t turn = first + q + offset, side = turn % 2, *task = given.tasks + turn / 2 % given.trained * 2;
      query[q] = task[side], target[q] = 1 - 2 * side, begin[q] = q * stride;
      own[q] = begin[q] + task[side], opposite[q] = begin[q] + task[1 - side];
    }
    for (int64_t i = 0; i < columns; ++i) {
      const Row<T> strong = given.bound * (2 * row(chance, 3 * columns + i) - 1);
      const Row<int32_t> disturbing =
          int32_t(sizes.relevant) + whole(row(chance, 2 * columns + i) * T(sizes.irrelevant));
      if (i == sizes.room) {
        row(query_strength, 0) = strong;
        for (int64_t q = 0; q < SIDE; ++q) query_irrelevant[q] = disturbing[q];
        break;
      }
      row(label, i) = row(chance, i) < given.fraction / 2 ? row(target, 0) : -row(target, 0);
      row(strength, i) = strong, row(irrelevant, i) = row(begin, 0) + disturbing;
    }
    draw_others(given, keys, row(begin, 0));
  }

 private:
  static Row<int32_t> whole(const Row<T>& x) { return __builtin_convertvector(x, Row<int32_t>); }

  // The numbers of prompts side by side.
  static Row<int32_t> numbers() {
    alignas(LINE) int32_t found[SIDE];
    for (int64_t q = 0; q < SIDE; ++q) found[q] = q;
    return row(found, 0);
  }

  // Those of some numbers that are chosen, one after the other, and behind them anything; how many they are.
  static int64_t put_together(const Row<int32_t>& chosen, const Row<int32_t>& numbers, int32_t* to) {
#if defined(__AVX512F__)
    const __mmask16 which = _mm512_test_epi32_mask((__m512i)chosen, (__m512i)chosen);
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(which, (__m512i)numbers));
    return __builtin_popcount(which);
#else
    int64_t count = 0;
    UNROLL for (int64_t q = 0; q < SIDE; ++q) to[count] = numbers[q], count -= chosen[q];
    return count;
#endif
  }

  // Pattern and label of contexts that the task does not decide.
  void draw_others(const Given<T>& given, const Keys& keys, const Row<int32_t>& begin) {
    many = 0;
    int32_t* const others = this->others;
    const int64_t length = given.length;
    const T fraction = given.fraction;
    int64_t count = 0;
    for (int64_t i = 0; i < length; ++i) {
      const Row<int32_t> other = __builtin_convertvector(row(chance, i) >= fraction, Row<int32_t>);
      count += put_together(other, numbers() + int32_t(i * SIDE), others + count);
    }
    many = count;
    std::fill_n(others + many, SIDE, 0);
    const Row<int32_t> one = row(own, 0) - begin, two = row(opposite, 0) - begin;
    const Row<int32_t> lower = one < two ? one : two, upper = one < two ? two : one;
    const Word columns = sizes.room + 1;
    const T left = std::max<int64_t>(sizes.relevant - 2, 1);
    for (int64_t k = 0; k < many; k += SIDE) {
      const Row<int32_t> which = row(others, k / SIDE), prompt = which % int32_t(SIDE);
      const Vector<Word> context = (Vector<Word>)(which / int32_t(SIDE));
      Words<2> first, second, words, more;
      first[0] = first[1] = picked(keys.first, prompt), second[0] = second[1] = picked(keys.second, prompt);
      more[0] = context + columns, more[1] = context + 4 * columns;
      threefry(first, second, words, more);
      Row<int32_t> other = whole(uniform<T>(words[0], more[0]) * left);
      other -= other >= picked(lower, prompt);
      other -= other >= picked(upper, prompt);
      row(other_places, k / SIDE) = picked(begin, prompt) + other;
      row(other_labels, k / SIDE) = uniform<T>(words[1], more[1]) < T(0.5) ? Row<T>{} + 1 : Row<T>{} - 1;
    }
    for (int64_t k = 0; k < many; ++k) label[others[k]] = other_labels[k];
  }
};

// Numbers at some places, one after the other: instructions that do so are slow.
template <typename T, int... PLACE>
inline Row<T> looked_up(const T* from, const int32_t* places, std::integer_sequence<int, PLACE...>) {
  return Row<T>{from[places[PLACE]]...};
}

constexpr int64_t MANY_SIDES = 3, TOGETHER = MANY_SIDES * SIDE;  // prompts that are multiplied together: rows of whole tiles

template <typename T>
class Layer {
  const Sizes& sizes;
  const int64_t stride, features, wide;  // padded: coordinates, those of all heads, neurons
  // Folded weights and their gradients, W_Q^T W_K and W_O W_V, for patterns of length 1; the latter also turned.
  T *products, *found_products, *folded_hidden, *turned_hidden, *found_hidden;
  T *turned, *votes, *scale;  // for products; padded; of the coordinates of a token
  T *asked, *along;           // of prompts side by side
  T *share, *pull;            // of the prompts that are added together
  T *all_mixed, *all_gates;   // of those and some before them, whose part of a gradient is still to be added
  int64_t held;
  T *mixed, *gates;  // of the prompts that are added together
  alignas(LINE) T outputs[TOGETHER], weight[TOGETHER];
  Given<T> given;
  T loss;

 public:
  Layer(const Sizes& s, Scratch& scratch);

  int64_t coordinates() const { return features; }
  const Given<T>& run() const { return given; }

  void begin(const Given<T>& run);
  void add(Drawn<T>* drawn, int64_t count);
  void mean(T* mean_loss, T* query, T* key, T* value, T* hidden);

 private:
  // Without the places behind the coordinates of the last head.
  int64_t inner() const { return features - stride + sizes.dim(); }

  void attend(Drawn<T>& drawn, int64_t begin, int64_t head);
  void vote(const Drawn<T>* drawn, int64_t count);
  void pull_back(Drawn<T>& drawn, int64_t begin, int64_t head, int64_t count);
  void add_held();

  // The patterns of contexts times what each prompt has there.
  void gather(Drawn<T>& drawn, const T* from, T* found) const {
    alignas(LINE) T own[SIDE], opposite[SIDE];
    for (int64_t q = 0; q < SIDE; ++q) own[q] = from[drawn.own[q]], opposite[q] = from[drawn.opposite[q]];
    for (int64_t i = 0; i < given.length; ++i) {
      const Row<T> role = row(drawn.chance, i);
      row(found, i) = role < given.fraction / 2 ? row(own, 0) : role < given.fraction ? row(opposite, 0) : Row<T>{};
    }
    const int32_t *others = drawn.others, *places = drawn.other_places, *irrelevant = drawn.irrelevant;
    for (int64_t k = 0, many = drawn.many; k < many; ++k) found[others[k]] = from[places[k]];
    const int64_t length = given.length;
    const T* strength = drawn.strength;
    for (int64_t i = 0; i < length; ++i)
      row(found, i) += row(strength, i) * looked_up(from, irrelevant + i * SIDE, std::make_integer_sequence<int, SIDE>{});
  }

  // Adds the weights of contexts up at their patterns, and at the label.
  void scatter(Drawn<T>& drawn, const T* __restrict weights, T* __restrict to) const {
    const Vector<T> zeros = ::held<T>(Vector<T>{});  // unknown to the compiler, which would call a function for every row
    for (int64_t q = 0; q < SIDE; ++q)
      for (int64_t d = 0; d < stride; d += WIDTH<T>) at(to + q * features + d) = zeros;
    Row<T> own = {}, opposite = {}, label = {};
    for (int64_t i = 0; i < given.length; ++i) {
      const Row<T> role = row(drawn.chance, i), here = row(weights, i), one = role < given.fraction / 2 ? here : Row<T>{};
      own += one, opposite += role < given.fraction ? here - one : Row<T>{}, label += here * row(drawn.label, i);
    }
    const int64_t last = sizes.dim() - 1;
    for (int64_t q = 0; q < SIDE; ++q)
      to[drawn.own[q]] = own[q], to[drawn.opposite[q]] = opposite[q], to[q * features + last] = label[q];
    const int32_t *others = drawn.others, *places = drawn.other_places, *irrelevant = drawn.irrelevant;
    for (int64_t k = 0, many = drawn.many; k < many; ++k) to[places[k]] += weights[others[k]];
    for (int64_t i = 0; i < given.length; ++i) {
      alignas(LINE) T part[SIDE];
      row(part, 0) = row(weights, i) * row(drawn.strength, i);
      UNROLL for (int64_t q = 0; q < SIDE; ++q) to[irrelevant[i * SIDE + q]] += part[q];
    }
  }

  // The label's coordinate of each prompt.
  Row<T> label_of(const T* numbers) const {
    Row<T> found;
    for (int64_t q = 0; q < SIDE; ++q) found[q] = numbers[q * features + sizes.dim() - 1];
    return found;
  }

  // From patterns of length 1 to those that prompts hold, or back: the gradient goes the same way.
  void lengthen(T* product, T* hidden) {
    for (int64_t r = 0; r < stride; ++r)
      for (int64_t d = 0; d < stride; d += WIDTH<T>) at(product + r * stride + d) *= given.norm * at(scale + d);
    for (int64_t r = 0; r < stride; ++r)
      for (int64_t n = 0; n < wide; n += WIDTH<T>) at(hidden + r * wide + n) *= scale[r];
  }
};

template <typename T>
constexpr int64_t STEP = TWO * WIDTH<T>;
constexpr int64_t MOST_HELD = 3 * TOGETHER;  // prompts: long sums stay in registers

template <typename T>
Layer<T>::Layer(const Sizes& s, Scratch& scratch)
    : sizes(s),
      stride(rounded_up(s.dim(), STEP<T>)),
      features(s.heads * stride),
      wide(rounded_up(s.neurons, STEP<T>)),
      products(scratch.zeros<T>(features * stride)),
      found_products(scratch.zeros<T>(features * stride)),
      folded_hidden(scratch.zeros<T>(features * wide)),
      turned_hidden(scratch.zeros<T>(wide * features)),
      found_hidden(scratch.zeros<T>(features * wide)),
      turned(scratch.zeros<T>(std::max(stride, wide) * stride)),
      votes(scratch.zeros<T>(wide)),
      scale(scratch.zeros<T>(stride)),
      asked(scratch.zeros<T>(SIDE * features)),
      along(scratch.zeros<T>(s.room * SIDE)),
      share(scratch.zeros<T>(s.heads * s.room * TOGETHER)),
      pull(scratch.zeros<T>(TOGETHER * features)),
      all_mixed(scratch.zeros<T>(MOST_HELD * features)),
      all_gates(scratch.zeros<T>(MOST_HELD * wide)) {}

// Folds the weights.
template <typename T>
void Layer<T>::begin(const Given<T>& run) {
  given = run, loss = 0, held = 0;
  const int64_t dim = sizes.dim(), neurons = sizes.neurons;
  std::fill_n(scale, dim - 1, given.norm), scale[dim - 1] = 1;
  std::copy_n(given.votes, neurons, votes);
  std::fill_n(found_products, features * stride, T(0)), std::fill_n(found_hidden, features * wide, T(0));
  for (int64_t h = 0; h < sizes.heads; ++h) {
    T *to_product = products + h * stride * stride, *to_hidden = folded_hidden + h * stride * wide;
    const int64_t first = h * sizes.keys * dim, second = h * sizes.values * dim, third = h * sizes.values * neurons;
    product<false, T>(by_columns<T>(given.query + first, dim), {given.key + first, dim}, {to_product, stride}, dim, dim,
                      sizes.keys);
    product<false, T>(by_columns<T>(given.value + second, dim), {given.hidden + third, neurons}, {to_hidden, wide}, dim,
                      neurons, sizes.values);
    lengthen(to_product, to_hidden);
  }
  turn<T>({folded_hidden, wide}, {turned_hidden, features}, features, wide);
}

template <typename T>
void Layer<T>::add(Drawn<T>* drawn, int64_t count) {
  mixed = all_mixed + held * features, gates = all_gates + held * wide;
  for (int64_t q = 0; q < count; q += SIDE)
    for (int64_t h = 0; h < sizes.heads; ++h) attend(drawn[q / SIDE], q, h);
  vote(drawn, count);
  for (int64_t q = 0; q < count; q += SIDE)
    for (int64_t h = 0; h < sizes.heads; ++h) pull_back(drawn[q / SIDE], q, h, std::min(SIDE, count - q));
  for (int64_t q = 0; q < count; ++q)
    for (int64_t d = 0; d < features; d += WIDTH<T>) at(mixed + q * features + d) *= weight[q];
  held += count;
  if (held == MOST_HELD) add_held();
}

// Adds to the gradient in W_O W_V.
template <typename T>
void Layer<T>::add_held() {
  product<true, T>(by_columns<T>(all_mixed, features), {all_gates, wide}, {found_hidden, wide}, inner(), wide, held);
  held = 0;
}

// The attention of a head and what it sees: logits p_i . W_Q^T W_K^T p_query, h = sum_i p_i attn_i; of prompts side by side that
// come from place `begin` on.
template <typename T>
void Layer<T>::attend(Drawn<T>& drawn, int64_t begin, int64_t head) {
  const T* from = products + head * stride * stride;
  T *question = asked + head * stride, *own = share + (begin * sizes.heads + head * SIDE) * sizes.room;
  for (int64_t q = 0; q < SIDE; ++q) {
    const T *one = from + drawn.query[q] * stride, *other = from + drawn.query_irrelevant[q] * stride;
    for (int64_t d = 0; d < stride; d += WIDTH<T>)
      at(question + q * features + d) = at(one + d) + drawn.query_strength[q] * at(other + d);
  }
  Row<T> most = Row<T>{} - std::numeric_limits<T>::infinity(), total = {};
  gather(drawn, question, own);
  const Row<T> label = label_of(question);
  for (int64_t i = 0; i < given.length; ++i) {
    row(own, i) += label * row(drawn.label, i);
    most = row(own, i) > most ? row(own, i) : most;
  }
  for (int64_t i = 0; i < given.length; ++i) total += row(own, i) = exp_below_of<T>(row(own, i) - most);
  const Row<T> over = 1 / total;
  for (int64_t i = 0; i < given.length; ++i) row(own, i) *= over;
  scatter(drawn, own, mixed + begin * features + head * stride);
}

// Outputs and loss, and what a prompt weighs in its gradient; `pull` becomes the gradient of outputs in what the heads see.
template <typename T>
void Layer<T>::vote(const Drawn<T>* drawn, int64_t count) {
  product<false, T>(by_rows<T>(mixed, features), {folded_hidden, wide}, {gates, wide}, count, wide, inner());
  for (int64_t begin = 0; begin < count; begin += WIDTH<T>) {
    Vector<T> sum[WIDTH<T>];
    for (int64_t q = 0; q < WIDTH<T>; ++q) {
      T* const own = gates + (begin + q) * wide;
      Vector<T> output = {};
      for (int64_t n = 0; n < wide; n += WIDTH<T>) {
        const Vector<T> here = at(own + n), open = here > 0 ? at(votes + n) : Vector<T>{};
        output += open * here, at(own + n) = open;
      }
      sum[q] = output;
    }
    at(outputs + begin) = sums_of<T>(sum);
  }
  const T each = T(1) / sizes.prompts;
  for (int64_t begin = 0; begin < count; begin += SIDE) {
    const Row<T> target = row(drawn[begin / SIDE].target, 0), margin = target * row(outputs + begin, 0);
    Row<T> here, pull;
    if (given.logistic) {
      for (int64_t q = 0; q < SIDE; ++q) {
        const T small = std::exp(-std::abs(margin[q]));
        here[q] = std::max<T>(-margin[q], 0) + std::log1p(small), pull[q] = (margin[q] < 0 ? 1 : small) / (1 + small);
      }
    } else {
      here = margin >= 1 ? Row<T>{} : 1 - margin, pull = margin < 1 ? Row<T>{} + 1 : Row<T>{};
    }
    for (int64_t q = 0; q < std::min(SIDE, count - begin); ++q) loss += here[q];
    for (int64_t q = count - begin; q < SIDE; ++q) pull[q] = 0;
    row(weight + begin, 0) = pull * -target * each;
  }
  product<false, T>(by_rows<T>(gates, wide), {turned_hidden, features}, {pull, features}, count, features, sizes.neurons);
}

// From what a head sees to its W_Q^T W_K: with c the gradient in h, that in the question is sum_i attn_i (c . (p_i - h)) p_i.
template <typename T>
void Layer<T>::pull_back(Drawn<T>& drawn, int64_t begin, int64_t head, int64_t count) {
  alignas(LINE) T common[SIDE];
  const T *to_all = pull + begin * features + head * stride, *all_seen = mixed + begin * features + head * stride;
  for (int64_t some = 0; some < SIDE; some += WIDTH<T>) {
    Vector<T> sum[WIDTH<T>];
    for (int64_t q = 0; q < WIDTH<T>; ++q) {
      const T *to = to_all + (some + q) * features, *seen = all_seen + (some + q) * features;
      Vector<T> both = {};
      for (int64_t d = 0; d < stride; d += WIDTH<T>) both += at(to + d) * at(seen + d);
      sum[q] = both;
    }
    at(common + some) = sums_of<T>(sum);
  }
  T *question = asked + head * stride, *own = share + (begin * sizes.heads + head * SIDE) * sizes.room;
  gather(drawn, to_all, along);
  const Row<T> label = label_of(to_all);
  for (int64_t i = 0; i < given.length; ++i)
    row(own, i) *= row(weight + begin, 0) * (row(along, i) + label * row(drawn.label, i) - row(common, 0));
  scatter(drawn, own, question);
  for (int64_t q = 0; q < count; ++q) {
    T *one = found_products + (head * stride + drawn.query[q]) * stride;
    T *other = found_products + (head * stride + drawn.query_irrelevant[q]) * stride;
    for (int64_t d = 0; d < stride; d += WIDTH<T>) {
      const Vector<T> seen = at(question + q * features + d);
      at(one + d) += seen, at(other + d) += drawn.query_strength[q] * seen;
    }
  }
}

// Unfolds the gradient.
template <typename T>
void Layer<T>::mean(T* mean_loss, T* query, T* key, T* value, T* hidden) {
  *mean_loss = loss / sizes.prompts;
  add_held();
  const int64_t dim = sizes.dim(), keys = sizes.keys, values = sizes.values, neurons = sizes.neurons;
  for (int64_t h = 0; h < sizes.heads; ++h) {
    const int64_t first = h * keys * dim, second = h * values * dim, third = h * values * neurons;
    T *of_product = found_products + h * stride * stride, *of_hidden = found_hidden + h * stride * wide;
    lengthen(of_product, of_hidden);
    product<false, T>(by_rows<T>(given.query + first, dim), {of_product, stride}, {key + first, dim}, keys, dim, dim);
    turn<T>({of_product, stride}, {turned, stride}, stride, stride);
    product<false, T>(by_rows<T>(given.key + first, dim), {turned, stride}, {query + first, dim}, keys, dim, dim);
    product<false, T>(by_rows<T>(given.value + second, dim), {of_hidden, wide}, {hidden + third, neurons}, values, neurons, dim);
    turn<T>({of_hidden, wide}, {turned, stride}, stride, wide);
    product<false, T>(by_rows<T>(given.hidden + third, neurons), {turned, stride}, {value + second, dim}, values, dim, neurons);
  }
}

// Given: W_Q, W_K, W_V, W_O transposed, votes; relevant fraction, noise bound, pattern norm; tasks, those that are trained, contexts
// of a prompt; key of the prompts. Found: loss, its gradient in the four. Lanes come first in all.
template <typename T>
void fresh(Call call) {
  const int64_t runs = call.count_found(0), prompts = call.number("prompts"), room = call.number("room");
  const int64_t relevant = call.number("relevant"), logistic = call.number("logistic");
  const Sizes sizes{prompts,         room,           relevant,        call.last(0, 1) - relevant - 1, call.last(0, 3),
                    call.last(3, 1), call.last(0, 2), call.last(2, 2)};
  Scratch scratch;
  Layer<T> layer(sizes, scratch);
  std::vector<Drawn<T>> drawn;
  for (int64_t n = 0; n < MANY_SIDES; ++n) drawn.emplace_back(sizes, layer.coordinates(), scratch);
  for (int64_t run = 0; run < runs; ++run) {
    const auto own = [=](int place) { return call.given<T>(place) + run * (call.count_given(place) / runs); };
    const auto whole = [=](int place) { return call.given<int64_t>(place) + run * (call.count_given(place) / runs); };
    const auto to = [=](int place) { return call.found<T>(place) + run * (call.count_found(place) / runs); };
    const Word* words = call.given<Word>(11) + 2 * run;
    layer.begin({own(0), own(1), own(2), own(3), own(4), whole(8), *whole(9), std::min(*whole(10), room), *own(5), *own(6),
                 *own(7), logistic != 0});
    // `jax.random.randint(key, (), 0, 1 << 20)`: the last 20 of its bits.
    int64_t offset = 0;
    each_word<1>(part_of(folded(words, prompts), 1), 0, 1,
                 [&](int64_t, const Vector<Word>&, const Vector<Word>& two) { offset = two[0] % (1 << 20); });
    for (int64_t first = 0; first < prompts; first += TOGETHER) {
      const int64_t count = std::min(TOGETHER, prompts - first);
      for (int64_t q = 0; q < count; q += SIDE) drawn[q / SIDE].draw(layer.run(), words, offset, first + q);
      layer.add(drawn.data(), count);
    }
    layer.mean(to(0), to(1), to(2), to(3), to(4));
  }
}

KERNEL(in_context_fresh,
        "query T[head key dim], key T[head key dim], value T[head value dim], hidden T[feature neuron], votes T[neuron], "
        "fraction T[], bound T[], norm T[], tasks i8[task 2 1], trained i8[], examples i8[], key u4[2] "
        "-> loss T[], query T[head key dim], key T[head key dim], value T[head value dim], hidden T[feature neuron] "
        "where feature == head * value, relevant > 0, relevant + 1 < dim, room > 0, prompts > 0",
        fresh)
