// One step of plain descent on a batch in its field: `moved_plainly` of the module `kernel`, which says what is computed.
//
// XLA needs shapes that hold the largest field of a room, multiplies with matrices that are mostly zeros, draws dropout for
// rows that are not there, and writes the gradient in V to memory to read it again. Here a field has the size that it has, rows
// of sampled matrices are sums of a few rows, and V moves while its numbers are in registers for the derivative below it.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernel.h"
#include "products.h"
#include "scratch.h"
#include "threefry.h"
#include "vectors.h"

constexpr int PAIR = 2;                       // rows of V that move together
constexpr int SLOPES = BYTES == 64 ? 12 : 4;  // rows of slopes that move them together

// A by rows, and what its nodes have.
template <typename T>
struct Graph {
  const int32_t *start, *count, *column;
  const T *weight, *features, *labels;
  int64_t nodes, feature, outputs, widest;
};

// The groups as a sampler sees them, and the random words of its rounds: (round, pivot or word, group).
template <typename T>
struct Sampling {
  const int32_t *begin, *size, *samples;
  const T* scale;
  const Word* words;
  int64_t groups, rounds;
};

// Some rows of the sampled matrix: their columns by name and by place among their different names, and their values.
template <typename T>
struct Layer {
  int64_t rows, *from;
  int32_t *name, *place;
  T* value;

  Layer(const Graph<T>& graph, const int32_t* owner, int64_t count, Scratch& scratch)
      : rows(count), from(scratch.numbers<int64_t>(count + 1)) {
    from[0] = 0;
    for (int64_t r = 0; r < rows; ++r) from[r + 1] = from[r] + std::min<int64_t>(graph.count[owner[r]], graph.widest);
    name = scratch.numbers<int32_t>(from[rows]), place = scratch.numbers<int32_t>(from[rows]);
    value = scratch.numbers<T>(from[rows]);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t begin = graph.start[owner[r]], slots = from[r + 1] - from[r];
      std::copy(graph.column + begin, graph.column + begin + slots, name + from[r]);
      std::copy(graph.weight + begin, graph.weight + begin + slots, value + from[r]);
    }
  }

  // The different names, in order; places are found among them.
  int32_t* below(Scratch& scratch, int64_t& count) {
    int32_t* found = scratch.numbers<int32_t>(from[rows]);
    std::copy(name, name + from[rows], found);
    std::sort(found, found + from[rows]);
    count = std::unique(found, found + from[rows]) - found;
    for (int64_t s = 0; s < from[rows]; ++s) place[s] = std::lower_bound(found, found + count, name[s]) - found;
    return found;
  }

  // Values of columns that are drawn are scaled, those of others are 0: `kept` of the samplers, swap-or-not.
  void sample(const Sampling<T>& sampling, Scratch& scratch) {
    const int64_t count = from[rows], groups = sampling.groups;
    Word *at = scratch.numbers<Word>(count), *size = scratch.numbers<Word>(count);
    int32_t* group = scratch.numbers<int32_t>(count);
    for (int64_t s = 0; s < count; ++s) {
      group[s] = 0;
      for (int64_t g = 1; g < groups; ++g) group[s] += name[s] >= sampling.begin[g];
      at[s] = name[s] - sampling.begin[group[s]], size[s] = sampling.size[group[s]];
    }
    for (int64_t turn = 0; turn < sampling.rounds; ++turn) {
      const Word *pivot = sampling.words + 2 * turn * groups, *other = pivot + groups;
      for (int64_t g = 0; g < groups; ++g) {
        const Word whole = sampling.size[g], step = pivot[g] % whole, mark = other[g];
        for (int64_t s = 0; s < count; ++s) {
          Word partner = step + size[s] - at[s];
          partner = partner >= size[s] ? partner - size[s] : partner;
          Word word = std::max(at[s], partner) ^ mark;
          word = (word ^ (word >> 16)) * 0x85EBCA6B;
          word = (word ^ (word >> 13)) * 0xC2B2AE35;
          at[s] = group[s] == g && ((word ^ (word >> 16)) & 1) ? partner : at[s];
        }
      }
    }
    for (int64_t s = 0; s < count; ++s)
      value[s] *= at[s] < Word(sampling.samples[group[s]]) ? sampling.scale[group[s]] : T(0);
  }
};

// to += value from, a row.
template <typename T>
inline void add_row(T value, const T* __restrict from, T* __restrict to, int64_t width) {
  for (int64_t j = 0; j < width; ++j) to[j] += value * from[j];
}

// ReLU, and dropout after it; what stays is scaled up.
template <typename T>
void thin(T* before, int64_t count, const Word* key, Word threshold, T scale) {
  each(key, nullptr, 1, count, [&](int64_t place, const Group& one, const Group& two, int64_t some) {
    alignas(LINE) Word mixed[COUNT];
    UNROLL for (int q = 0; q < GROUP; ++q) at(mixed + q * WIDTH<Word>) = (one[q] ^ two[q]) & Word(0xFFFF);
    T* here = before + place;
    const auto thinned = [&](int64_t upto) {
      for (int64_t q = 0; q < upto; ++q) {
        const T scaled = std::max(here[q], T(0)) * scale;
        here[q] = mixed[q] >= threshold ? scaled : T(0);
      }
    };
    some == COUNT ? thinned(COUNT) : thinned(some);
  });
}

// The derivative of that: what is above 0 has moved.
template <typename T>
void thin_back(const T* __restrict after, T* __restrict slope, int64_t count, T scale) {
  for (int64_t q = 0; q < count; ++q) {
    const T scaled = slope[q] * scale;
    slope[q] = after[q] > 0 ? scaled : T(0);
  }
}

// A vector of columns of a pair of rows of V, and of some slopes: what it adds to their products, and how it moves.
template <int U, typename T>
inline void move_at(const T* slopes, const T* factor, const T* old, T* v, int64_t apart, Vector<T> (&sum)[U][PAIR]) {
  Vector<T> was[PAIR], is[PAIR];
  UNROLL for (int r = 0; r < PAIR; ++r) was[r] = held<T>(at(old + r * apart)), is[r] = held<T>(at(v + r * apart));
  UNROLL for (int u = 0; u < U; ++u) {
    const Vector<T> slope = held<T>(at(slopes + u * WIDTH<T>));
    UNROLL for (int r = 0; r < PAIR; ++r) sum[u][r] += slope * was[r];
    UNROLL for (int r = 0; r < PAIR; ++r) is[r] += factor[u * PAIR + r] * slope;
  }
  UNROLL for (int r = 0; r < PAIR; ++r) at(v + r * apart) = is[r];
}

// All columns of them, for `count` of `many` slopes. The last columns come first: right after the others they would wait for
// what these wrote.
template <int U, typename T>
void move_pair(int64_t count, const T* slopes, int64_t many, const T* factor, const T* old, T* v, int64_t width,
               int64_t apart, T* sums) {
  if constexpr (U > 1)
    if (count < U) return move_pair<U - 1, T>(count, slopes, many, factor, old, v, width, apart, sums);
  constexpr int64_t W = WIDTH<T>;
  const int64_t whole = width / W * W, last = width - W;
  Vector<T> sum[U][PAIR] = {};
  if (whole < width) move_at<U, T>(slopes + whole * many, factor, old + last, v + last, apart, sum);
  for (int64_t j = 0; j < whole; j += W) move_at<U, T>(slopes + j * many, factor, old + j, v + j, apart, sum);
  UNROLL for (int u = 0; u < U; ++u) UNROLL for (int r = 0; r < PAIR; ++r) at(sums + (u * W + r) * W) = sum[u][r];
}

// by_mixed = slope V^T, and V += mixed^T slope after it, in one pass: both need the same vectors of slopes and of V.
template <typename T>
void move_back(const T* slope, const T* mixed, T* v, T* by_mixed, int64_t many, int64_t width, Scratch& scratch) {
  constexpr int64_t W = WIDTH<T>;
  if (width < W) {
    product_along<T>({slope, width}, {v, width}, {by_mixed, width}, many, width, width);
    return product<true, T>(by_columns<T>(mixed, width), {slope, width}, {v, width}, width, width, many);
  }
  // Slopes vector by vector (vector of columns, row, column); the last vector ends with the rows, behind zeros.
  const int64_t whole = width / W * W, rest = width - whole, parts = (many + SLOPES - 1) / SLOPES;
  T *slopes = scratch.zeros<T>(rounded_up(width, W) * many), *sums = scratch.numbers<T>(many * W * W);
  T *factor = scratch.numbers<T>(many * PAIR), *copy = scratch.numbers<T>(PAIR * width);
  for (int64_t u = 0; u < many; ++u) {
    const T* own = slope + u * width;
    for (int64_t j = 0; j < whole; j += W) at(slopes + j * many + u * W) = at(own + j);
    std::copy(own + whole, own + width, slopes + whole * many + u * W + W - rest);
  }
  for (int64_t k = 0; k < width; k += W) {
    const int64_t rows = std::min(W, width - k);
    for (int64_t r = 0; r < rows; r += PAIR) {
      const int64_t apart = r + 1 < rows ? width : 0;  // a last row without another is a pair with itself
      T* pair = v + (k + r) * width;
      for (int64_t u = 0; u < many; ++u)
        for (int64_t q = 0; q < PAIR; ++q) factor[u * PAIR + q] = mixed[u * width + k + r + (apart ? q : 0)];
      const T* old = parts > 1 ? std::copy_n(pair, width + apart, copy) - width - apart : pair;
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t i = many * part / parts, end = many * (part + 1) / parts;
        move_pair<SLOPES, T>(end - i, slopes + i * W, many, factor + i * PAIR, old, pair, width, apart,
                                sums + (i * W + r) * W);
      }
    }
    for (int64_t u = 0; u < many; ++u) {
      T found[W];
      at(found) = sums_of<T>(&at(sums + u * W * W));
      std::copy(found, found + rows, by_mixed + u * width + k);
    }
  }
}

template <typename T>
struct Weights {
  T *w1, *w2;  // these move
  const T *readout, *bias1, *bias2;
  int64_t width;
};

// Moves the weights; gives the loss, and how many nodes the field has.
template <typename T>
T step_of(const Weights<T>& net, const Graph<T>& graph, const Sampling<T>& sampling, const int32_t* batch, int64_t size,
          const Word* keys, Word threshold, T scale, T rate, T* seen) {
  const int64_t width = net.width, feature = graph.feature, outputs = graph.outputs;
  Scratch scratch;
  int64_t many, most;
  Layer<T> third(graph, batch, size, scratch);
  const int32_t* middle = third.below(scratch, many);
  Layer<T> second(graph, middle, many, scratch);
  const int32_t* lower = second.below(scratch, most);
  Layer<T> first(graph, lower, most, scratch);
  for (Layer<T>* layer : {&third, &second, &first}) layer->sample(sampling, scratch);
  *seen = most;

  T *given = scratch.zeros<T>(most * feature), *hidden = scratch.numbers<T>(most * width);
  for (int64_t u = 0; u < most; ++u) {
    for (int64_t s = first.from[u]; s < first.from[u + 1]; ++s)
      add_row(first.value[s], graph.features + first.name[s] * feature, given + u * feature, feature);
    std::copy(net.bias1, net.bias1 + width, hidden + u * width);
  }
  product<true, T>(by_rows<T>(given, feature), {net.w1, width}, {hidden, width}, most, width, feature);
  thin(hidden, most * width, keys, threshold, scale);

  T *mixed = scratch.zeros<T>(many * width), *upper = scratch.numbers<T>(many * width);
  for (int64_t u = 0; u < many; ++u) {
    for (int64_t s = second.from[u]; s < second.from[u + 1]; ++s)
      add_row(second.value[s], hidden + second.place[s] * width, mixed + u * width, width);
    std::copy(net.bias2, net.bias2 + width, upper + u * width);
  }
  product<true, T>(by_rows<T>(mixed, width), {net.w2, width}, {upper, width}, many, width, width);
  thin(upper, many * width, keys + 2, threshold, scale);

  T *voted = scratch.zeros<T>(many * outputs), *pulled = scratch.zeros<T>(many * outputs);
  T *turned_readout = scratch.numbers<T>(outputs * width), *error = scratch.numbers<T>(outputs), loss = 0;
  for (int64_t j = 0; j < width; ++j)
    for (int64_t o = 0; o < outputs; ++o) turned_readout[o * width + j] = net.readout[j * outputs + o];
  product_along<T>({upper, width}, {turned_readout, width}, {voted, outputs}, many, outputs, width);
  for (int64_t n = 0; n < size; ++n) {
    const T* label = graph.labels + batch[n] * outputs;
    for (int64_t o = 0; o < outputs; ++o) error[o] = -label[o];
    for (int64_t s = third.from[n]; s < third.from[n + 1]; ++s)
      add_row(third.value[s], voted + third.place[s] * outputs, error, outputs);
    for (int64_t o = 0; o < outputs; ++o) loss += error[o] * error[o] / 2, error[o] /= size;
    for (int64_t s = third.from[n]; s < third.from[n + 1]; ++s)
      add_row(third.value[s], error, pulled + third.place[s] * outputs, outputs);
  }

  T *slope = scratch.numbers<T>(many * width), *by_mixed = scratch.numbers<T>(many * width);
  product<false, T>(by_rows<T>(pulled, outputs), {turned_readout, width}, {slope, width}, many, width, outputs);
  thin_back(upper, slope, many * width, scale);
  for (int64_t q = 0; q < many * width; ++q) mixed[q] *= -rate;
  move_back<T>(slope, mixed, net.w2, by_mixed, many, width, scratch);
  T* by_hidden = scratch.zeros<T>(most * width);
  for (int64_t u = 0; u < many; ++u)
    for (int64_t s = second.from[u]; s < second.from[u + 1]; ++s)
      add_row(second.value[s], by_mixed + u * width, by_hidden + second.place[s] * width, width);
  thin_back(hidden, by_hidden, most * width, scale);
  for (int64_t q = 0; q < most * feature; ++q) given[q] *= -rate;
  product<true, T>(by_columns<T>(given, feature), {by_hidden, width}, {net.w1, width}, feature, width, most);
  return loss / size;
}

// Given: W (feature, hidden), V (hidden, second), readout (second, output), two biases; the graph: start, count, column, weight;
// features (node, feature), labels (node, output); batch; words (round, 2, group); groups: begin, size, samples, scale; keys of
// dropout (layer, 2), the bits below which is dropped, the share that stays; step size. Found: W and V after the step, loss, nodes
// of the field. Lanes come first in all.
template <typename T>
void step(Call call) {
  const int64_t width = call.last(1, 1), feature = call.last(0, 2), outputs = call.last(2, 1), nodes = call.last(6, 1);
  const int64_t slots = call.last(7, 1), size = call.last(11, 1), rounds = call.last(12, 3), groups = call.last(12, 1);
  for (int64_t lane = 0; lane < call.count_given(20); ++lane) {
    const auto of = [=](int place, int64_t count) { return call.given<T>(place) + lane * count; };
    const auto whole = [=](int place, int64_t count) { return call.given<int32_t>(place) + lane * count; };
    const auto word = [=](int place, int64_t count) { return call.given<Word>(place) + lane * count; };
    const auto to = [=](int place, int64_t count) { return call.found<T>(place) + lane * count; };
    const int64_t first = feature * width, second = width * width;
    const Weights<T> net{to(0, first), to(1, second), of(2, width * outputs), of(3, width), of(4, width), width};
    if (net.w1 != of(0, first)) std::copy_n(of(0, first), first, net.w1);
    if (net.w2 != of(1, second)) std::copy_n(of(1, second), second, net.w2);
    const Graph<T> graph{whole(5, nodes),           whole(6, nodes), whole(7, slots), of(8, slots), of(9, nodes * feature),
                         of(10, nodes * outputs), nodes,           feature,         outputs,      call.number("widest")};
    const Sampling<T> sampling{whole(13, groups),           whole(14, groups), whole(15, groups), of(16, groups),
                               word(12, rounds * 2 * groups), groups,            rounds};
    *to(2, 1) = step_of(net, graph, sampling, whole(11, size), size, word(17, 4), *word(18, 1), 1 / *of(19, 1), *of(20, 1),
                        to(3, 1));
  }
}

KERNEL(gcn_step,
        "w1 T[feature width], w2 T[width width], readout T[width output], bias1 T[width], bias2 T[width], start i4[node], "
        "count i4[node], column i4[slot], weight T[slot], features T[node feature], labels T[node output], batch i4[batch], "
        "words u4[round 2 group], begin i4[group], size i4[group], samples i4[group], scale T[group], keys u4[2 2], "
        "threshold u4[], share T[], rate T[] "
        "-> w1 T[feature width], w2 T[width width], loss T[], seen T[] "
        "where widest > 0",
        step)
