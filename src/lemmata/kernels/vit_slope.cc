// Loss and gradient of a batch, sample after sample: `mean_in_jax` of the module beside, which says what is computed.
//
// XLA makes a dozen kernels of a sample, whose token-by-neuron arrays go through memory. Here a few tokens meet a few
// hundred neurons at a time: their gates are made once, and used for both gradients before they leave the cache. Arrays of a
// sample have tokens as columns, so that sums over tokens and features add registers of askers.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "vit_products.h"
#include "elementary.h"
#include "kernel.h"
#include "vectors.h"

constexpr int64_t ASKERS = 24, NEURONS = 16;  // tokens and registers of neurons whose gates are in the cache together

// Rows of numbers that fall on different places of the cache: no multiple of two lines apart.
template <typename T>
int64_t spread(int64_t size) {
  const int64_t line = LINE / sizeof(T), lines = rounded_up(size, line) / line;
  return (lines | 1) * line;
}

template <typename T>
struct Sizes {
  int64_t samples, tokens, dimension, heads, features, neurons, outputs, places;
  int64_t across = spread<T>(tokens), wide = spread<T>(neurons);  // numbers from row to row

  bool skip() const { return features > heads * dimension; }
};

// One sample after another: the tokens that it keeps, what they see, and how the neurons vote.
template <typename T>
class Sample {
  static constexpr int64_t W = WIDTH<T>;
  const Sizes<T> size;
  const bool mixes;              // whether votes are copied
  int64_t count = 0, broad = 0;  // tokens that are kept, and registers of them
  std::vector<int64_t> place;
  std::vector<T> kept;
  std::vector<const T*> vote;  // a_(l) of every place
  Zeros<T> packed, turned, asked, exponentials, inverse, features, pulled, below, gates, hidden, found, mixed;

 public:
  explicit Sample(const Sizes<T>& size, const T* given)
      : size(size), mixes(size.outputs > 1 || size.neurons < W), place(size.tokens), kept(size.tokens), vote(size.places),
        packed(size.tokens * size.dimension), turned(size.dimension * size.across), asked(size.dimension * size.across),
        exponentials(size.heads * size.tokens * size.across), inverse(size.heads * size.across),
        features(size.features * size.across), pulled(size.features * size.across), below(size.tokens * size.across),
        gates(ASKERS * NEURONS * W), hidden(size.features * size.wide), found(size.features * size.wide),
        mixed((mixes ? size.places : 1) * size.wide) {
    for (int64_t f = 0; f < size.features; ++f)
      std::memcpy(hidden + f * size.wide, given + f * size.neurons, size.neurons * sizeof(T));
  }

  // Loss of a sample; its gradients are added to those of the product W_Q^T W_K and of the hidden weights.
  T add(const T* products, const T* votes, const T* given, const T* weights, const T* label, bool linear, bool trained,
        T* pulled_product, T* pulled_hidden) {
    keep(given, weights);
    listen(votes, label);
    for (int64_t head = 0; head < size.heads; ++head) attend(products + head * size.dimension * size.dimension, head);
    if (size.skip())
      std::memcpy(features + size.heads * size.dimension * size.across, turned, size.dimension * size.across * sizeof(T));
    const T margin = perceive(mixes ? T(1) : *label), gap = 1 - margin;
    if (!linear && gap <= 0) return 0;  // not so for NaN
    for (int64_t n = 0; n < size.features * size.wide; n += W) at(pulled_hidden + n) -= at(found + n);
    for (int64_t head = 0; trained && head < size.heads; ++head)
      pull_back(head, pulled_product + head * size.dimension * size.dimension);
    return linear ? -margin : gap;
  }

 private:
  T* row(T* of, int64_t n) const { return of + n * size.across; }

  // Keeps a product, or adds it to what is there.
  auto into(T* of, int64_t stride, bool added = false) const {
    return [=](int64_t n) {
      return [=, to = of + n * stride](int64_t q, Vector<T> sum) { at(to + q) = added ? at(to + q) + sum : sum; };
    };
  }

  // The tokens that count, together.
  void keep(const T* given, const T* weights) {
    count = 0;
    for (int64_t l = 0; l < size.tokens; ++l) {
      if (weights[l] == 0) continue;
      std::memcpy(packed + count * size.dimension, given + l * size.dimension, size.dimension * sizeof(T));
      kept[count] = weights[l], place[count] = size.places > 1 ? l : 0;
      ++count;
    }
    broad = (count + W - 1) / W;
    for (int64_t d = 0; d < size.dimension; ++d) {
      T* to = row(turned, d);
      for (int64_t l = 0; l < count; ++l) to[l] = packed[l * size.dimension + d];
      std::fill(to + count, to + broad * W, T(0));
    }
  }

  // The votes for the label. Those of one output are read where they lie, beyond the end of a row, too, where no gate is
  // ever open; but not beyond the end of the last row.
  void listen(const T* votes, const T* label) {
    const int64_t all = size.places * size.neurons, last = all - size.neurons;
    if (!mixes) {
      std::memcpy(mixed, votes + last, size.neurons * sizeof(T));
      for (int64_t l = 0; l < size.places; ++l) vote[l] = l + 1 < size.places ? votes + l * size.neurons : mixed;
      return;
    }
    for (int64_t l = 0; l < size.places; ++l) {
      T* to = mixed + l * size.wide;
      for (int64_t n = 0; n < size.neurons; ++n) to[n] = label[0] * votes[l * size.neurons + n];
      for (int64_t k = 1; k < size.outputs; ++k)
        for (int64_t n = 0; n < size.neurons; ++n) to[n] += label[k] * votes[k * all + l * size.neurons + n];
      vote[l] = to;
    }
  }

  // x'_l = sum_s A_ls x_s of one head: row s of `exponentials` has e^(logit) of token s for all askers, up to a factor.
  void attend(const T* weights, int64_t head) {
    const int64_t d = size.dimension;
    T *shares = exponentials + head * size.tokens * size.across, *scale = row(inverse, head);
    product_kept<T>({weights, 1, d}, turned, size.across, d, broad, d,
               into(asked, size.across));
    product_kept<T>({packed, d, 1}, asked, size.across, count, broad, d,
               into(shares, size.across));
    for (int64_t q = 0; q < broad * W; q += W) {
      Vector<T> largest = Vector<T>{} - std::numeric_limits<T>::infinity(), sum = {};
      for (int64_t s = 0; s < count; ++s) {
        const Vector<T> logit = at(row(shares, s) + q);
        largest = logit > largest ? logit : largest;
      }
      for (int64_t s = 0; s < count; ++s) {
        Vector<T>& share = at(row(shares, s) + q);
        share = kept[s] * exp_below<T>(share - largest);
        sum += share;
      }
      at(scale + q) = 1 / sum;
    }
    T* seen = row(features, head * d);
    product_kept<T>({packed, 1, d}, shares, size.across, d, broad, count, into(seen, size.across));
    for (int64_t i = 0; i < d; ++i)
      for (int64_t q = 0; q < broad * W; q += W) at(row(seen, i) + q) *= at(scale + q);
  }

  // y F with its gradients in the features (`pulled`) and in the hidden weights (`found`), from the gates
  // g_l = y a_(l) kept_l / sum(kept) 1[W f_l > 0].
  T perceive(T label) {
    T whole = 0;
    for (int64_t l = 0; l < count; ++l) whole += kept[l];
    std::fill(pulled + 0, row(pulled, size.features), T(0));
    std::fill(found + 0, found + size.features * size.wide, T(0));
    const int64_t registers = (size.neurons + W - 1) / W, blocks = (registers + NEURONS - 1) / NEURONS;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t first = registers * block / blocks, some = registers * (block + 1) / blocks - first;
      for (int64_t begin = 0; begin < count; begin += ASKERS)
        meet(begin, std::min(ASKERS, count - begin), first * W, some, label / whole);
    }
    Vector<T> sum = {};
    for (int64_t f = 0; f < size.features; ++f)
      for (int64_t q = 0; q < broad * W; q += W) sum += at(row(pulled, f) + q) * at(row(features, f) + q);
    return count ? sum_of<T>(sum) : std::numeric_limits<T>::quiet_NaN();
  }

  // Some tokens and some neurons.
  void meet(int64_t begin, int64_t askers, int64_t first, int64_t some, T weight) {
    constexpr int64_t STRIDE = NEURONS * W;
    const int64_t wide = size.wide;
    product_kept<T>({features + begin, 1, size.across}, hidden + first, wide, askers, some, size.features,
               [&](int64_t l) {
                 const T *own = vote[place[begin + l]] + first, size = weight * kept[begin + l];
                 return [=, to = gates + l * STRIDE](int64_t q, Vector<T> sum) {
                   at(to + q) = sum > 0 ? size * at(own + q) : Vector<T>{};
                 };
               });
    product_kept<T>({features + begin, size.across, 1}, gates, STRIDE, size.features, some, askers,
               into(found + first, wide, true));
    dots<T>(gates, STRIDE, askers, hidden + first, wide, size.features, some,
            [&](int64_t l, int64_t f, T sum) { row(pulled, f)[begin + l] += sum; });
  }

  // From the features of a head to its product of weights, where the loss falls with slope one: with D = dx' x^T, the logits
  // have the gradient A (D - sum_s A_ls D_ls), and the sum is x'_l dx'_l.
  void pull_back(int64_t head, T* pulled_product) {
    const int64_t d = size.dimension, across = size.across;
    const T *shares = exponentials + head * size.tokens * across, *scale = row(inverse, head);
    T *cotangent = row(pulled, head * d), *seen = row(features, head * d), *common = asked;
    for (int64_t q = 0; q < broad * W; q += W) {
      Vector<T> sum = {};
      for (int64_t i = 0; i < d; ++i) {
        at(row(cotangent, i) + q) *= at(scale + q);  // in place of the shares, which are d times as many
        sum += at(row(cotangent, i) + q) * at(row(seen, i) + q);
      }
      at(common + q) = sum;
    }
    product_kept<T>({packed, d, 1}, cotangent, across, count, broad, d, into(below, size.across));
    for (int64_t s = 0; s < count; ++s)
      for (int64_t q = 0; q < broad * W; q += W)
        at(row(below, s) + q) = at(shares + s * across + q) * (at(row(below, s) + q) - at(common + q));
    product_kept<T>({packed, 1, d}, below, across, d, broad, count,
               into(cotangent, size.across));
    dots<T>(turned, across, d, cotangent, across, d, broad,
            [&](int64_t i, int64_t j, T sum) { pulled_product[i * d + j] -= sum; });
  }
};

// Given: products (heads, dim, dim); hidden (features, neurons); votes (outputs, places, neurons); tokens (samples, tokens, dim);
// kept (samples, tokens); labels (samples, outputs). Found: loss, summed over samples, and its gradient in products and hidden.
template <typename T>
void slope(Call call) {
  const T *products = call.given<T>(0), *hidden = call.given<T>(1), *votes = call.given<T>(2), *tokens = call.given<T>(3);
  const T *kept = call.given<T>(4), *labels = call.given<T>(5);
  const int64_t *sample = call.shape(3), *layer = call.shape(1), *vote = call.shape(2);
  const bool linear = call.number("linear"), trained = call.number("trained");
  const Sizes<T> size{sample[0], sample[1], sample[2], call.shape(0)[0], layer[0], layer[1], vote[0], vote[1]};
  Sample<T> one(size, hidden);
  Zeros<T> found(size.features * size.wide);
  T *gradient = call.found<T>(1), total = 0;
  std::fill(gradient, gradient + call.count_given(0), T(0));
  for (int64_t n = 0; n < size.samples; ++n)
    total += one.add(products, votes, tokens + n * size.tokens * size.dimension, kept + n * size.tokens,
                     labels + n * size.outputs, linear, trained, gradient, found);
  *call.found<T>(0) = total;
  for (int64_t f = 0; f < size.features; ++f)
    std::memcpy(call.found<T>(2) + f * size.neurons, found + f * size.wide, size.neurons * sizeof(T));
}

KERNEL(vit_slope,
        "products T[head dim dim], hidden T[feature neuron], votes T[output place neuron], tokens T[sample token dim], "
        "kept T[sample token], labels T[sample output] "
        "-> loss T[], products T[head dim dim], hidden T[feature neuron] "
        "where place in (1, token), feature - head * dim in (0, dim)",
        slope)
