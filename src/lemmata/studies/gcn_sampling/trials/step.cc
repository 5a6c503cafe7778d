// One step of plain descent on a batch in its field: `moved_plainly` of the module `kernel`, which says what is computed.
//
// XLA needs shapes that hold the largest field of a room, multiplies with matrices that are mostly zeros, draws dropout for
// rows that are not there, and writes the gradient in V to memory to read it again. Here a field has the size that it has, rows
// of sampled matrices are sums of a few rows, and V moves while it lies in the cache for the derivative below it.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "products.h"
#include "scratch.h"
#include "threefry.h"
#include "vectors.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

constexpr int64_t FORWARD = 32, BACKWARD = 12;  // rows of V that are looked at together

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
  each(key, nullptr, 1, count, [&](int64_t place, const Words& one, const Words& two, int64_t some) {
    alignas(LINE) Word mixed[COUNT];
    UNROLL for (int q = 0; q < MANY; ++q) at(mixed + q * WIDTH<Word>) = (one[q] ^ two[q]) & Word(0xFFFF);
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

inline void fetch(const void* from, int64_t size) {
  for (int64_t at = 0; at < size; at += LINE) __builtin_prefetch(static_cast<const char*>(from) + at);
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
  product<true, T>(plain<T>(given, feature), {net.w1, width}, {hidden, width}, most, width, feature);
  thin(hidden, most * width, keys, threshold, scale);

  T *mixed = scratch.zeros<T>(many * width), *upper = scratch.numbers<T>(many * width);
  for (int64_t u = 0; u < many; ++u) {
    for (int64_t s = second.from[u]; s < second.from[u + 1]; ++s)
      add_row(second.value[s], hidden + second.place[s] * width, mixed + u * width, width);
    std::copy(net.bias2, net.bias2 + width, upper + u * width);
  }
  for (int64_t k = 0; k < width; k += FORWARD) {
    const int64_t rows = std::min(FORWARD, width - k), next = std::min(FORWARD, width - k - rows);
    fetch(net.w2 + (k + rows) * width, next * width * sizeof(T));
    product<true, T>(plain<T>(mixed + k, width), {net.w2 + k * width, width}, {upper, width}, many, width, rows);
  }
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
  product<false, T>(plain<T>(pulled, outputs), {turned_readout, width}, {slope, width}, many, width, outputs);
  thin_back(upper, slope, many * width, scale);
  for (int64_t q = 0; q < many * width; ++q) mixed[q] *= -rate;
  for (int64_t k = 0; k < width; k += BACKWARD) {
    const int64_t rows = std::min(BACKWARD, width - k), next = std::min(BACKWARD, width - k - rows);
    T* v = net.w2 + k * width;
    fetch(v + rows * width, next * width * sizeof(T));
    product_along<T>({slope, width}, {v, width}, {by_mixed + k, width}, many, rows, width);
    product<true, T>(turned<T>(mixed + k, width), {slope, width}, {v, width}, rows, width, many);
  }
  T* by_hidden = scratch.zeros<T>(most * width);
  for (int64_t u = 0; u < many; ++u)
    for (int64_t s = second.from[u]; s < second.from[u + 1]; ++s)
      add_row(second.value[s], by_mixed + u * width, by_hidden + second.place[s] * width, width);
  thin_back(hidden, by_hidden, most * width, scale);
  for (int64_t q = 0; q < most * feature; ++q) given[q] *= -rate;
  product<true, T>(turned<T>(given, feature), {by_hidden, width}, {net.w1, width}, feature, width, most);
  return loss / size;
}

template <typename Buffer>
int64_t last(const Buffer& buffer, int from_end) {
  return buffer.dimensions()[buffer.dimensions().size() - from_end];
}

// Lanes come first, in all of them.
template <ffi::DataType KIND>
ffi::Error step(ffi::Buffer<KIND> w1, ffi::Buffer<KIND> w2, ffi::Buffer<KIND> readout, ffi::Buffer<KIND> bias1,
                ffi::Buffer<KIND> bias2, ffi::Buffer<ffi::S32> start, ffi::Buffer<ffi::S32> count,
                ffi::Buffer<ffi::S32> column, ffi::Buffer<KIND> weight, ffi::Buffer<KIND> features, ffi::Buffer<KIND> labels,
                ffi::Buffer<ffi::S32> batch, ffi::Buffer<ffi::U32> words, ffi::Buffer<ffi::S32> begin,
                ffi::Buffer<ffi::S32> sizes, ffi::Buffer<ffi::S32> samples, ffi::Buffer<KIND> scale,
                ffi::Buffer<ffi::U32> keys, ffi::Buffer<ffi::U32> threshold, ffi::Buffer<KIND> share,
                ffi::Buffer<KIND> rate, int64_t widest, ffi::ResultBuffer<KIND> moved1, ffi::ResultBuffer<KIND> moved2,
                ffi::ResultBuffer<KIND> loss, ffi::ResultBuffer<KIND> seen) {
  using T = ffi::NativeType<KIND>;
  const int64_t width = last(w2, 1), feature = last(w1, 2), outputs = last(readout, 1), nodes = last(count, 1);
  const int64_t slots = last(column, 1), size = last(batch, 1), rounds = last(words, 3), groups = last(words, 1);
  for (int64_t lane = 0; lane < int64_t(rate.element_count()); ++lane) {
    const auto of = [lane](const auto& buffer, int64_t count) { return buffer.typed_data() + lane * count; };
    const Weights<T> net{of(*moved1, feature * width), of(*moved2, width * width), of(readout, width * outputs),
                         of(bias1, width), of(bias2, width), width};
    if (net.w1 != of(w1, feature * width)) std::copy_n(of(w1, feature * width), feature * width, net.w1);
    if (net.w2 != of(w2, width * width)) std::copy_n(of(w2, width * width), width * width, net.w2);
    const Graph<T> graph{of(start, nodes), of(count, nodes), of(column, slots), of(weight, slots),
                         of(features, nodes * feature), of(labels, nodes * outputs), nodes, feature, outputs, widest};
    const Sampling<T> sampling{of(begin, groups), of(sizes, groups), of(samples, groups), of(scale, groups),
                               of(words, rounds * 2 * groups), groups, rounds};
    *of(*loss, 1) = step_of(net, graph, sampling, of(batch, size), size, of(keys, 4), *of(threshold, 1), 1 / *of(share, 1),
                            *of(rate, 1), of(*seen, 1));
  }
  return ffi::Error::Success();
}

#define NUMBERS(kind) Arg<ffi::Buffer<kind>>()
#define HANDLER(name, kind)                                                                                \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, step<kind>,                                                          \
                                ffi::Ffi::Bind()                                                           \
                                    .NUMBERS(kind)     /* W: feature, hidden */                            \
                                    .NUMBERS(kind)     /* V: hidden, second */                             \
                                    .NUMBERS(kind)     /* readout: second, output */                       \
                                    .NUMBERS(kind)     /* biases */                                        \
                                    .NUMBERS(kind)                                                         \
                                    .NUMBERS(ffi::S32) /* graph: start, count, column, weight */           \
                                    .NUMBERS(ffi::S32)                                                     \
                                    .NUMBERS(ffi::S32)                                                     \
                                    .NUMBERS(kind)                                                         \
                                    .NUMBERS(kind)     /* features: node, feature */                       \
                                    .NUMBERS(kind)     /* labels: node, output */                          \
                                    .NUMBERS(ffi::S32) /* batch */                                         \
                                    .NUMBERS(ffi::U32) /* words: round, 2, group */                        \
                                    .NUMBERS(ffi::S32) /* groups: begin, size, samples, scale */           \
                                    .NUMBERS(ffi::S32)                                                     \
                                    .NUMBERS(ffi::S32)                                                     \
                                    .NUMBERS(kind)                                                         \
                                    .NUMBERS(ffi::U32) /* keys of dropout: layer, 2 */                     \
                                    .NUMBERS(ffi::U32) /* bits below it are dropped */                     \
                                    .NUMBERS(kind)     /* the share that stays */                          \
                                    .NUMBERS(kind)     /* step size */                                     \
                                    .Attr<int64_t>("widest")                                               \
                                    .Ret<ffi::Buffer<kind>>() /* W and V after the step */                 \
                                    .Ret<ffi::Buffer<kind>>()                                              \
                                    .Ret<ffi::Buffer<kind>>() /* loss */                                   \
                                    .Ret<ffi::Buffer<kind>>() /* nodes of the field */)
HANDLER(field_step_float32, ffi::F32);
HANDLER(field_step_float64, ffi::F64);
