// The mean hinge loss of a batch and its gradient: `slope` of the module `network`, which says what is computed, on sets of rows
// of one table of tokens.
//
// Some nodes at a time, so that their tokens stay in a cache from the attention to its derivative: XLA gathers the tokens of all
// nodes first and reads them again for each of four products, which are too short for its own.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "elementary.h"
#include "kernel.h"
#include "products.h"
#include "scratch.h"
#include "vectors.h"

constexpr int64_t TOGETHER = 32;  // nodes
constexpr int CHAINS = 4;        // sums over slots that go side by side

template <typename T>
struct Network {
  const T *query, *key, *value, *hidden, *bias, *signs;
  int64_t width, dim, neurons, buckets;
};

template <typename T>
struct Gradient {
  T *query, *key, *value, *hidden, *bias;
};

// What the nodes of a batch see: names of rows of the table, their distances, and which slots are filled.
template <typename T>
struct Sets {
  const T *table, *asking;
  const int32_t *members, *distance, *label;
  const bool* filled;
  int64_t rows, batch, slots;
};

// Rows of a matrix, filled up with zeros to whole vectors.
template <typename T>
void fill_up(const T* from, int64_t rows, int64_t columns, T* to, int64_t stride) {
  const int64_t behind = stride - WIDTH<T>;  // whole vectors lie before it
  Vector<typename Elementary<T>::Whole> mine;
  for (int64_t q = 0; q < WIDTH<T>; ++q) mine[q] = behind + q < columns ? -1 : 0;
  for (int64_t r = 0; r < rows; ++r, from += columns, to += stride) {
    for (int64_t d = 0; d < behind; d += WIDTH<T>) at(to + d) = at(from + d);
    if ((rows - r) * columns >= stride)
      at(to + behind) = mine ? at(from + behind) : Vector<T>{};
    else  // nothing may be read past the last row
      std::fill(std::copy(from + behind, from + columns, to + behind), to + stride, T(0));
  }
}

// Some nodes on their way through the network. Rows are filled up with zeros to whole vectors, sets with empty slots to whole
// vectors of slots.
template <typename T>
struct Group {
  int64_t stride, breadth, many;
  T *tokens, *gates, *alpha, *moved, *distance, *asking, *asked, *mixed, *value, *back, *pulled, *cross;
  int64_t* rows;

  Group(const Network<T>& net, const Sets<T>& sets, Scratch& scratch)
      : stride(rounded_up(net.dim, WIDTH<T>)), breadth(rounded_up(net.width, WIDTH<T>)),
        many(rounded_up(sets.slots, std::max<int64_t>(WIDTH<T>, CHAINS))) {
    tokens = scratch.numbers<T>(sets.rows * stride), gates = scratch.numbers<T>(TOGETHER * net.neurons);
    for (T** one : {&alpha, &distance}) *one = scratch.zeros<T>(TOGETHER * many);
    for (T** one : {&asking, &asked, &mixed, &pulled, &cross}) *one = scratch.numbers<T>(TOGETHER * stride);
    for (T** one : {&value, &back}) *one = scratch.numbers<T>(TOGETHER * breadth);
    moved = scratch.numbers<T>(many), rows = scratch.zeros<int64_t>(TOGETHER * many);
    fill_up<T>(sets.table, sets.rows, net.dim, tokens, stride);
  }

  // x_s . w for WIDTH slots.
  Vector<T> along(const int64_t* row, const T* way) {
    Vector<T> sum[WIDTH<T>] = {};
    for (int64_t d = 0; d < stride; d += WIDTH<T>) {
      const Vector<T> here = at(way + d);
      UNROLL for (int q = 0; q < WIDTH<T>; ++q) sum[q] += at(tokens + row[q] + d) * here;
    }
    return sums_of<T>(sum);
  }

  // The sum over s of w_s x_s.
  void mix(const int64_t* row, const T* weight, T* found) {
    for (int64_t d = 0; d < stride; d += 2 * WIDTH<T>) {
      const bool two = d + WIDTH<T> < stride;
      Vector<T> sum[CHAINS][2] = {};
      for (int64_t s = 0; s < many; s += CHAINS)
        UNROLL for (int c = 0; c < CHAINS; ++c) {
          const T* from = tokens + row[s + c] + d;
          sum[c][0] += weight[s + c] * at(from);
          if (two) sum[c][1] += weight[s + c] * at(from + WIDTH<T>);
        }
      UNROLL for (int c = 1; c < CHAINS; ++c) sum[0][0] += sum[c][0], sum[0][1] += sum[c][1];
      at(found + d) = sum[0][0];
      if (two) at(found + d + WIDTH<T>) = sum[0][1];
    }
  }
};

// alpha and the attended tokens of one node.
template <typename T>
void attend(const Network<T>& net, const Sets<T>& sets, Group<T>& group, int64_t node, int64_t place) {
  const int64_t first = node * sets.slots, many = group.many, slots = sets.slots, stride = group.stride;
  const int32_t *members = sets.members + first, *away = sets.distance + first;
  const bool* filled = sets.filled + first;
  int64_t* __restrict rows = group.rows + place * many;
  T *__restrict alpha = group.alpha + place * many, *__restrict distance = group.distance + place * many;
  const T *asked = group.asked + place * stride, empty = -std::numeric_limits<T>::infinity();
  for (int64_t s = 0; s < slots; ++s) rows[s] = members[s] * stride;
  for (int64_t s = 0; s < slots; ++s) distance[s] = away[s];
  for (int64_t s = 0; s < slots; ++s) alpha[s] = filled[s] ? T(0) : empty;
  for (int64_t s = slots; s < many; ++s) alpha[s] = empty;
  Vector<T> most = Vector<T>{} + empty, total = {};
  for (int64_t s = 0; s < many; s += WIDTH<T>) {
    Vector<T> logit = at(alpha + s) + group.along(rows + s, asked);
    for (int64_t z = 0; z < net.buckets; ++z) logit += at(distance + s) == T(z) ? Vector<T>{} + net.bias[z] : Vector<T>{};
    most = logit > most ? logit : most;
    at(alpha + s) = logit;
  }
  T part[WIDTH<T>];
  at(part) = most;
  const T largest = *std::max_element(part, part + WIDTH<T>);
  for (int64_t s = 0; s < many; s += WIDTH<T>) total += at(alpha + s) = exp_below<T>(at(alpha + s) - largest);
  const T share = 1 / sum_of<T>(total);
  for (int64_t s = 0; s < many; s += WIDTH<T>) at(alpha + s) *= share;
  group.mix(rows, alpha, group.mixed + place * group.stride);
}

// F of one node from what its neurons are given, which becomes the open gates A.
template <typename T>
T vote(const Network<T>& net, T* given) {
  Vector<T> sum = {};
  int64_t i = 0;
  for (; i + WIDTH<T> <= net.neurons; i += WIDTH<T>) {
    const Vector<T> before = at(given + i), gate = before > 0 ? at(net.signs + i) : Vector<T>{};
    sum += before * gate;
    at(given + i) = gate;
  }
  T output = sum_of<T>(sum);
  for (; i < net.neurons; ++i) {
    const T gate = given[i] > 0 ? net.signs[i] : 0;
    output += given[i] * gate;
    given[i] = gate;
  }
  return output;
}

// h = sum_s e_s x_s of one node, and its part of the gradient in b; e_s carries the weight of the node in the loss.
template <typename T>
void attend_back(const Network<T>& net, Group<T>& group, int64_t place, T weight, T* bias) {
  const int64_t many = group.many, begin = place * group.stride;
  const int64_t* rows = group.rows + place * many;
  const T *alpha = group.alpha + place * many, *distance = group.distance + place * many;
  Vector<T> sum = {};
  for (int64_t d = 0; d < group.stride; d += WIDTH<T>) sum += at(group.pulled + begin + d) * at(group.mixed + begin + d);
  const T mean = sum_of<T>(sum);
  for (int64_t s = 0; s < many; s += WIDTH<T>)
    at(group.moved + s) = weight * at(alpha + s) * (group.along(rows + s, group.pulled + begin) - mean);
  for (int64_t z = 0; z < net.buckets; ++z)
    for (int64_t s = 0; s < many; s += WIDTH<T>)
      at(bias + z * WIDTH<T>) += at(distance + s) == T(z) ? at(group.moved + s) : Vector<T>{};
  group.mix(rows, group.moved, group.cross + begin);
}

template <typename T>
T slope_of(const Network<T>& net, const Sets<T>& sets, T margin, const Gradient<T>& found) {
  const int64_t dim = net.dim, width = net.width, neurons = net.neurons;
  Scratch scratch;
  Group<T> group(net, sets, scratch);
  const int64_t stride = group.stride, breadth = group.breadth;
  T *key = scratch.numbers<T>(width * stride), *value = scratch.numbers<T>(width * stride);
  T *turned_value = scratch.zeros<T>(dim * breadth), *pull = scratch.numbers<T>(dim * stride);
  T *crossed = scratch.zeros<T>(dim * stride), *by_value = scratch.zeros<T>(width * stride);
  T* bias = scratch.zeros<T>(net.buckets * WIDTH<T>);
  fill_up<T>(net.key, width, dim, key, stride), fill_up<T>(net.value, width, dim, value, stride);
  for (int64_t k = 0; k < width; ++k)
    for (int64_t d = 0; d < dim; ++d) turned_value[d * breadth + k] = net.value[k * dim + d];
  product<false, T>(by_columns(net.query, dim), {key, stride}, {pull, stride}, dim, stride, width);
  std::fill(found.hidden, found.hidden + width * neurons, T(0));
  T loss = 0;
  for (int64_t node = 0; node < sets.batch; node += TOGETHER) {
    const int64_t count = std::min(TOGETHER, sets.batch - node);
    fill_up<T>(sets.asking + node * dim, count, dim, group.asking, stride);
    product<false, T>(by_rows<T>(group.asking, stride), {pull, stride}, {group.asked, stride}, count, stride, dim);
    for (int64_t n = 0; n < count; ++n) attend(net, sets, group, node + n, n);
    product<false, T>(by_rows<T>(group.mixed, stride), {turned_value, breadth}, {group.value, breadth}, count, breadth, dim);
    product<false, T>(by_rows<T>(group.value, breadth), {net.hidden, neurons}, {group.gates, neurons}, count, neurons, width);
    T weight[TOGETHER];
    for (int64_t n = 0; n < count; ++n) {
      const T label = sets.label[node + n], lost = std::max(margin - label * vote(net, group.gates + n * neurons), T(0));
      loss += lost;
      weight[n] = lost > 0 ? -label / sets.batch : 0;
    }
    product_along<T>({group.gates, neurons}, {net.hidden, neurons}, {group.back, width}, count, width, neurons);
    product<false, T>(by_rows<T>(group.back, width), {value, stride}, {group.pulled, stride}, count, stride, width);
    for (int64_t n = 0; n < count; ++n) {
      attend_back<T>(net, group, n, weight[n], bias);
      for (int64_t k = 0; k < width; ++k) group.value[n * breadth + k] *= weight[n], group.back[n * width + k] *= weight[n];
    }
    product<true, T>(by_columns<T>(group.value, breadth), {group.gates, neurons}, {found.hidden, neurons}, width, neurons, count);
    product<true, T>(by_columns<T>(group.back, width), {group.mixed, stride}, {by_value, stride}, width, stride, count);
    product<true, T>(by_columns<T>(group.cross, stride), {group.asking, stride}, {crossed, stride}, dim, stride, count);
  }
  product<false, T>(by_rows<T>(net.key, dim), {crossed, stride}, {found.query, dim}, width, dim, dim);
  product_along<T>({net.query, dim}, {crossed, stride}, {found.key, dim}, width, dim, dim);
  for (int64_t k = 0; k < width; ++k) std::copy(by_value + k * stride, by_value + k * stride + dim, found.value + k * dim);
  for (int64_t z = 0; z < net.buckets; ++z) found.bias[z] = sum_of<T>(at(bias + z * WIDTH<T>));
  return loss / sets.batch;
}

// Given: query (key, dim), key, value, hidden (value, neuron), bias, signs; table (node, dim), asking (batch, dim), members (batch,
// slot), distance, filled, label; margin. Found: loss, its gradient in query, key, value, hidden, bias. Lanes come first in all.
template <typename T>
void slope(Call call) {
  const int64_t dim = call.last(0, 1), width = call.last(0, 2), neurons = call.last(3, 1), buckets = call.last(4, 1);
  const int64_t rows = call.last(6, 2), batch = call.last(8, 2), slots = call.last(8, 1), square = width * dim;
  for (int64_t lane = 0; lane < call.count_given(12); ++lane) {
    const auto of = [=](int place, int64_t size) { return call.given<T>(place) + lane * size; };
    const auto whole = [=](int place, int64_t size) { return call.given<int32_t>(place) + lane * size; };
    const auto to = [=](int place, int64_t size) { return call.found<T>(place) + lane * size; };
    const Network<T> net{of(0, square),  of(1, square),  of(2, square), of(3, width * neurons),
                         of(4, buckets), of(5, neurons), width,         dim, neurons, buckets};
    const Sets<T> sets{of(6, rows * dim),
                       of(7, batch * dim),
                       whole(8, batch * slots),
                       whole(9, batch * slots),
                       whole(11, batch),
                       call.given<bool>(10) + lane * batch * slots,
                       rows,
                       batch,
                       slots};
    const Gradient<T> found{to(1, square), to(2, square), to(3, square), to(4, width * neurons), to(5, buckets)};
    *to(0, 1) = slope_of(net, sets, *of(12, 1), found);
  }
}

HANDLER(graph_slope_float32, slope<float>)
HANDLER(graph_slope_float64, slope<double>)
