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

#include "elementary.h"
#include "kernel.h"
#include "products.h"
#include "threefry.h"
#include "vectors.h"

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

// Prompts side by side. Places of patterns are those of the coordinates of prompt q in an array with rows of `stride` numbers.
template <typename T>
struct Drawn {
  const Sizes& sizes;
  const int64_t stride;
  Zeros<T> chance, strength, label;  // of every context
  Zeros<int32_t> relevant, irrelevant;
  int64_t query[SIDE], query_irrelevant[SIDE];
  alignas(LINE) T query_strength[SIDE], target[SIDE];

  Drawn(const Sizes& s, int64_t stride)
      : sizes(s),
        stride(stride),
        chance((5 * (s.room + 1) + GROUP) * SIDE),
        strength(s.room * SIDE),
        label(s.room * SIDE),
        relevant(s.room * SIDE),
        irrelevant(s.room * SIDE) {}

  void draw(const Given<T>& given, const Word* key, int64_t offset, int64_t first) {
    const int64_t columns = sizes.room + 1;
    T* const chance = this->chance;
    each_word(folded(key, first), 0, 5 * columns, [chance](int64_t n, const Vector<Word>& one, const Vector<Word>& two) {
      row(chance, n) = uniform<T>(one, two);
    });
    alignas(LINE) T own[SIDE], opposite[SIDE], begin[SIDE];
    for (int64_t q = 0; q < SIDE; ++q) {
      const int64_t turn = first + q + offset, side = turn % 2, *task = given.tasks + turn / 2 % given.trained * 2;
      own[q] = query[q] = task[side], opposite[q] = task[1 - side];
      target[q] = 1 - 2 * side, begin[q] = q * stride;
    }
    const Row<T> lower = row(own, 0) < row(opposite, 0) ? row(own, 0) : row(opposite, 0);
    const Row<T> upper = row(own, 0) < row(opposite, 0) ? row(opposite, 0) : row(own, 0);
    const T others = std::max<int64_t>(sizes.relevant - 2, 1);
    for (int64_t i = 0; i < columns; ++i) {
      const Row<T> role = row(chance, i), member = row(chance, columns + i), which = row(chance, 2 * columns + i);
      const Row<T> strong = given.bound * (2 * row(chance, 3 * columns + i) - 1), sign = row(chance, 4 * columns + i);
      const Row<T> disturbing = whole(which * T(sizes.irrelevant));
      if (i == sizes.room) {
        row(query_strength, 0) = strong;
        for (int64_t q = 0; q < SIDE; ++q) query_irrelevant[q] = sizes.relevant + int64_t(disturbing[q]);
        break;
      }
      Row<T> other = whole(member * others);  // among those that the task does not decide
      other = other < lower ? other : other + 1;
      other = other < upper ? other : other + 1;
      const Row<T> pattern = role < given.fraction / 2 ? row(own, 0) : role < given.fraction ? row(opposite, 0) : other;
      const Row<T> coin = sign < T(0.5) ? Row<T>{} + 1 : Row<T>{} - 1;
      row<T>(label, i) = role < given.fraction / 2 ? row(target, 0) : role < given.fraction ? -row(target, 0) : coin;
      row<T>(strength, i) = strong;
      row<int32_t>(relevant, i) = __builtin_convertvector(row(begin, 0) + pattern, Row<int32_t>);
      row<int32_t>(irrelevant, i) =
          __builtin_convertvector(row(begin, 0) + T(sizes.relevant) + disturbing, Row<int32_t>);
    }
  }

 private:
  static Row<T> whole(const Row<T>& x) { return __builtin_convertvector(__builtin_convertvector(x, Row<int32_t>), Row<T>); }
};

template <typename T>
class Layer {
  const Sizes& sizes;
  const int64_t stride, features, wide;  // padded: coordinates, those of all heads, neurons
  // Folded weights and their gradients, W_Q^T W_K and W_O W_V; the latter also turned.
  Zeros<T> products, found_products, folded_hidden, turned_hidden, found_hidden;
  Zeros<T> padded_key, padded_hidden, turned;  // for products
  Zeros<T> votes, scale;                       // the latter of the coordinates of a token
  Zeros<T> asked, sums, share, along, mixed, gates, pull, weighted;  // of prompts side by side
  alignas(LINE) T outputs[SIDE];
  Given<T> given;
  T loss;

 public:
  explicit Layer(const Sizes& s);

  int64_t coordinates() const { return stride; }
  const Given<T>& run() const { return given; }

  void begin(const Given<T>& run);
  void add(Drawn<T>& drawn, int64_t count);
  void mean(T* mean_loss, T* query, T* key, T* value, T* hidden);

 private:
  void attend(Drawn<T>& drawn, int64_t head);
  void vote(Drawn<T>& drawn, int64_t count);
  void pull_back(Drawn<T>& drawn, int64_t head, int64_t count);

  // The patterns of contexts times what each prompt has there.
  void gather(Drawn<T>& drawn, const T* __restrict from, T* __restrict found) const {
    const int32_t *relevant = drawn.relevant, *irrelevant = drawn.irrelevant;
    const T* strength = drawn.strength;
    for (int64_t n = 0; n < given.length * SIDE; ++n) found[n] = from[relevant[n]] + strength[n] * from[irrelevant[n]];
  }

  // Adds the weights of contexts up at their patterns.
  void scatter(Drawn<T>& drawn, const T* __restrict weights, T* __restrict to) const {
    const int32_t *relevant = drawn.relevant, *irrelevant = drawn.irrelevant;
    const T* strength = drawn.strength;
    for (int64_t n = 0; n < given.length * SIDE; ++n) {
      to[relevant[n]] += weights[n];
      to[irrelevant[n]] += weights[n] * strength[n];
    }
  }

  // The label's coordinate of each prompt.
  Row<T> label_of(const T* numbers) const {
    Row<T> found;
    for (int64_t q = 0; q < SIDE; ++q) found[q] = numbers[q * stride + sizes.dim() - 1];
    return found;
  }

  // Rows of `from` in rows of `stride` numbers, the rest of which stays zero.
  static void copy(const T* from, int64_t rows, int64_t columns, T* to, int64_t stride) {
    for (int64_t r = 0; r < rows; ++r) std::copy_n(from + r * columns, columns, to + r * stride);
  }
  static void turn(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* to, int64_t to_stride) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
  }
};

template <typename T>
constexpr int64_t STEP = TWO * WIDTH<T>;

template <typename T>
Layer<T>::Layer(const Sizes& s)
    : sizes(s),
      stride(rounded_up(s.dim(), STEP<T>)),
      features(s.heads * stride),
      wide(rounded_up(s.neurons, STEP<T>)),
      products(features * stride),
      found_products(features * stride),
      folded_hidden(features * wide),
      turned_hidden(wide * features),
      found_hidden(features * wide),
      padded_key(s.keys * stride),
      padded_hidden(s.values * wide),
      turned(std::max(stride, wide) * stride),
      votes(wide),
      scale(stride),
      asked(SIDE * stride),
      sums(SIDE * stride),
      share(s.heads * s.room * SIDE),
      along(s.room * SIDE),
      mixed(SIDE * features),
      gates(SIDE * wide),
      pull(SIDE * features),
      weighted(SIDE * features) {}

// Folds the weights.
template <typename T>
void Layer<T>::begin(const Given<T>& run) {
  given = run, loss = 0;
  const int64_t dim = sizes.dim();
  std::fill_n(scale + 0, dim - 1, given.norm), scale[dim - 1] = 1;
  std::copy_n(given.votes, sizes.neurons, votes + 0);
  std::fill_n(found_products + 0, features * stride, T(0)), std::fill_n(found_hidden + 0, features * wide, T(0));
  for (int64_t h = 0; h < sizes.heads; ++h) {
    copy(given.key + h * sizes.keys * dim, sizes.keys, dim, padded_key, stride);
    product<false, T>(by_columns<T>(given.query + h * sizes.keys * dim, dim), {padded_key, stride},
                      {products + h * stride * stride, stride}, dim, stride, sizes.keys);
    copy(given.hidden + h * sizes.values * sizes.neurons, sizes.values, sizes.neurons, padded_hidden, wide);
    product<false, T>(by_columns<T>(given.value + h * sizes.values * dim, dim), {padded_hidden, wide},
                      {folded_hidden + h * stride * wide, wide}, dim, wide, sizes.values);
  }
  turn(folded_hidden, wide, features, sizes.neurons, turned_hidden, features);
}

template <typename T>
void Layer<T>::add(Drawn<T>& drawn, int64_t count) {
  for (int64_t h = 0; h < sizes.heads; ++h) attend(drawn, h);
  vote(drawn, count);
  for (int64_t h = 0; h < sizes.heads; ++h) pull_back(drawn, h, count);
}

// The attention of a head and what it sees: logits p_i . W_Q^T W_K^T p_query, h = sum_i p_i attn_i.
template <typename T>
void Layer<T>::attend(Drawn<T>& drawn, int64_t head) {
  constexpr T NEVER = -std::numeric_limits<T>::infinity();
  const int64_t last = sizes.dim() - 1;
  const T* from = products + head * stride * stride;
  for (int64_t q = 0; q < SIDE; ++q) {
    const T *own = from + drawn.query[q] * stride, *other = from + drawn.query_irrelevant[q] * stride;
    for (int64_t d = 0; d < stride; d += WIDTH<T>) {
      const Vector<T> seen = given.norm * (at(own + d) + drawn.query_strength[q] * at(other + d));
      at(asked + q * stride + d) = at(scale + d) * seen, at(sums + q * stride + d) = Vector<T>{};
    }
  }
  Row<T> most = Row<T>{} + NEVER, total = {}, labels = {};
  T* own = share + head * sizes.room * SIDE;
  gather(drawn, asked, own);
  const Row<T> label = label_of(asked);
  for (int64_t i = 0; i < given.length; ++i) {
    row(own, i) += label * row<T>(drawn.label, i);
    most = row(own, i) > most ? row(own, i) : most;
  }
  for (int64_t i = 0; i < given.length; ++i) total += row(own, i) = exp_below_of<T>(row(own, i) - most);
  const Row<T> over = 1 / total;
  for (int64_t i = 0; i < given.length; ++i) row(own, i) *= over, labels += row(own, i) * row<T>(drawn.label, i);
  scatter(drawn, own, sums);
  for (int64_t q = 0; q < SIDE; ++q) {
    sums[q * stride + last] = labels[q];
    for (int64_t d = 0; d < stride; d += WIDTH<T>)
      at(mixed + q * features + head * stride + d) = at(scale + d) * at(sums + q * stride + d);
  }
}

// Outputs and loss; `pull` becomes the gradient in what the heads see.
template <typename T>
void Layer<T>::vote(Drawn<T>& drawn, int64_t count) {
  product<false, T>(by_rows<T>(mixed, features), {folded_hidden, wide}, {gates, wide}, SIDE, wide, features);
  for (int64_t q = 0; q < SIDE; ++q) {
    Vector<T> sum = {};
    for (int64_t n = 0; n < wide; n += WIDTH<T>) {
      Vector<T>& here = at(gates + q * wide + n);
      const Vector<T> open = here > 0 ? at(votes + n) : Vector<T>{};
      sum += open * here, here = open;
    }
    outputs[q] = sum_of<T>(sum);
  }
  product<false, T>(by_rows<T>(gates, wide), {turned_hidden, features}, {pull, features}, SIDE, features, wide);
  for (int64_t q = 0; q < SIDE; ++q) {
    const T target = drawn.target[q], margin = target * outputs[q];
    T weight = 0;
    if (q < count) {
      if (given.logistic) {
        const T small = std::exp(-std::abs(margin));
        loss += std::max<T>(-margin, 0) + std::log1p(small);
        weight = (margin < 0 ? 1 : small) / (1 + small);
      } else {
        loss += std::max<T>(1 - margin, 0);
        weight = margin < 1;
      }
    }
    weight *= -target / sizes.prompts;
    for (int64_t d = 0; d < features; d += WIDTH<T>) {
      at(weighted + q * features + d) = weight * at(mixed + q * features + d);
      at(pull + q * features + d) *= weight;
    }
  }
  product<true, T>(by_columns<T>(weighted, features), {gates, wide}, {found_hidden, wide}, features, wide, SIDE);
}

// From what a head sees to its W_Q^T W_K: with c the gradient in h, that in the question is sum_i attn_i (c . (p_i - h)) p_i.
template <typename T>
void Layer<T>::pull_back(Drawn<T>& drawn, int64_t head, int64_t count) {
  const int64_t last = sizes.dim() - 1;
  alignas(LINE) T common[SIDE];
  for (int64_t q = 0; q < SIDE; ++q) {
    Vector<T> sum = {};
    for (int64_t d = 0; d < stride; d += WIDTH<T>) {
      const int64_t here = q * features + head * stride + d;
      sum += at(pull + here) * at(mixed + here);
      at(asked + q * stride + d) = at(scale + d) * at(pull + here), at(sums + q * stride + d) = Vector<T>{};
    }
    common[q] = sum_of<T>(sum);
  }
  T* own = share + head * sizes.room * SIDE;
  Row<T> labels = {};
  gather(drawn, asked, along);
  const Row<T> label = label_of(asked);
  for (int64_t i = 0; i < given.length; ++i) {
    row(own, i) *= row<T>(along, i) + label * row<T>(drawn.label, i) - row(common, 0);
    labels += row(own, i) * row<T>(drawn.label, i);
  }
  scatter(drawn, own, sums);
  for (int64_t q = 0; q < count; ++q) {
    sums[q * stride + last] = labels[q];
    T *to = found_products + (head * stride + drawn.query[q]) * stride;
    T *other = found_products + (head * stride + drawn.query_irrelevant[q]) * stride;
    for (int64_t d = 0; d < stride; d += WIDTH<T>) {
      const Vector<T> seen = given.norm * at(scale + d) * at(sums + q * stride + d);
      at(to + d) += seen, at(other + d) += drawn.query_strength[q] * seen;
    }
  }
}

// Unfolds the gradient.
template <typename T>
void Layer<T>::mean(T* mean_loss, T* query, T* key, T* value, T* hidden) {
  *mean_loss = loss / sizes.prompts;
  const int64_t dim = sizes.dim(), keys = sizes.keys, values = sizes.values, neurons = sizes.neurons;
  for (int64_t h = 0; h < sizes.heads; ++h) {
    const int64_t first = h * keys * dim, second = h * values * dim, third = h * values * neurons;
    const T *of_product = found_products + h * stride * stride, *of_hidden = found_hidden + h * stride * wide;
    product<false, T>(by_rows<T>(given.query + first, dim), {of_product, stride}, {key + first, dim}, keys, dim, dim);
    turn(of_product, stride, dim, dim, turned, stride);
    product<false, T>(by_rows<T>(given.key + first, dim), {turned, stride}, {query + first, dim}, keys, dim, dim);
    product<false, T>(by_rows<T>(given.value + second, dim), {of_hidden, wide}, {hidden + third, neurons}, values, neurons, dim);
    turn(of_hidden, wide, dim, neurons, turned, stride);
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
  Layer<T> layer(sizes);
  Drawn<T> drawn(sizes, layer.coordinates());
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
    for (int64_t first = 0; first < prompts; first += SIDE) {
      drawn.draw(layer.run(), words, offset, first);
      layer.add(drawn, std::min(SIDE, prompts - first));
    }
    layer.mean(to(0), to(1), to(2), to(3), to(4));
  }
}

HANDLER(in_context_float32, fresh<float>)
HANDLER(in_context_float64, fresh<double>)
