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

constexpr int64_t TOGETHER = 64;  // nodes
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

// The nodes of a batch and what they see: names of rows of the table, their distances, and which slots are filled. Rows of the
// table may end with zeros. Labels are those of all rows.
template <typename T>
struct Sets {
  const T* table;
  const int32_t *asking, *members, *distance, *label;
  const bool* filled;
  int64_t rows, row, batch, slots;
};

// Half a register where registers are long: tokens are short, and fill such badly. Shorter ones are taken whole.
constexpr int HALF_BYTES = std::min(BYTES, 32);
template <typename T>
using Half = typename Register<T, HALF_BYTES>::type;
template <typename T>
constexpr int64_t HALF = HALF_BYTES / sizeof(T);

template <typename T>
inline Half<T>& half(T* place) {
  return *reinterpret_cast<Half<T>*>(place);
}
template <typename T>
inline const Half<T>& half(const T* place) {
  return *reinterpret_cast<const Half<T>*>(place);
}

// Rows of a matrix, with zeros behind them up to whole half vectors.
template <typename T>
void fill_up(const T* from, int64_t rows, int64_t columns, T* to, int64_t stride) {
  const int64_t whole = (columns - 1) / HALF<T> * HALF<T>;  // half vectors lie before it
  Half<typename Elementary<T>::Whole> mine;
  for (int64_t q = 0; q < HALF<T>; ++q) mine[q] = whole + q < columns ? -1 : 0;
  for (int64_t r = 0; r < rows; ++r, from += columns, to += stride) {
    for (int64_t d = 0; d < whole; d += HALF<T>) half(to + d) = half(from + d);
    if ((rows - r) * columns >= whole + HALF<T>)
      half(to + whole) = mine ? half(from + whole) : Half<T>{};
    else  // nothing may be read past the last row
      std::fill(std::copy(from + whole, from + columns, to + whole), to + whole + HALF<T>, T(0));
  }
}

// Some nodes on their way through the network. Rows are filled up with zeros to whole vectors, tokens to half ones, sets with
// empty slots to whole vectors of slots.
template <typename T>
struct Group {
  int64_t stride, breadth, length, many;
  const T* tokens;
  T *gates, *alpha, *moved, *distance, *asking, *asked, *mixed, *value, *outputs;
  int32_t* rows;

  Group(const Network<T>& net, const Sets<T>& sets, int64_t lanes, Scratch& scratch)
      : stride(rounded_up(sets.row, WIDTH<T>)), breadth(rounded_up(net.width, std::max<int64_t>(WIDTH<T>, COLUMNS_ALONG))),
        length(rounded_up(sets.row, HALF<T>)), many(rounded_up(sets.slots, std::max<int64_t>(WIDTH<T>, CHAINS))) {
    if (sets.row == length) {
      tokens = sets.table;
    } else {
      T* filled = scratch.numbers<T>(sets.rows * length);
      fill_up<T>(sets.table, sets.rows, sets.row, filled, length);
      tokens = filled;
    }
    for (T** one : {&alpha, &distance}) *one = scratch.numbers<T>(TOGETHER * many);
    for (T** one : {&asking, &asked}) *one = scratch.numbers<T>(TOGETHER * stride);
    mixed = scratch.zeros<T>(TOGETHER * stride);  // what lies behind tokens takes part in sums
    gates = scratch.numbers<T>(TOGETHER * lanes), value = scratch.numbers<T>(TOGETHER * breadth);
    moved = scratch.numbers<T>(many), rows = scratch.numbers<int32_t>(TOGETHER * many);
    outputs = scratch.numbers<T>(TOGETHER);
  }

  // x_s . w for HALF slots.
  Half<T> along(const int32_t* row, const T* way) const {
    Half<T> sum[HALF<T>] = {};
    for (int64_t d = 0; d < length; d += HALF<T>) {
      const Half<T> here = half(way + d);
      UNROLL for (int q = 0; q < HALF<T>; ++q) sum[q] += half(tokens + row[q] + d) * here;
    }
    return across<HALF<T>>(sum, [](Half<T> a, Half<T> b) { return a + b; });
  }

  // C half vectors of the sum over s of w_s x_s.
  template <int C>
  void mix_part(const int32_t* row, const T* weight, int64_t begin, T* found) const {
    Half<T> sum[CHAINS][C] = {};
    for (int64_t s = 0; s < many; s += CHAINS)
      UNROLL for (int c = 0; c < CHAINS; ++c) {
        const T* from = tokens + row[s + c] + begin;
        UNROLL for (int q = 0; q < C; ++q) sum[c][q] += weight[s + c] * half(from + q * HALF<T>);
      }
    UNROLL for (int q = 0; q < C; ++q) {
      UNROLL for (int c = 1; c < CHAINS; ++c) sum[0][q] += sum[c][q];
      half(found + begin + q * HALF<T>) = sum[0][q];
    }
  }
  void mix(const int32_t* row, const T* weight, T* found) const {
    int64_t d = 0;
    for (; d + 3 * HALF<T> <= length; d += 3 * HALF<T>) mix_part<3>(row, weight, d, found);
    for (; d < length; d += HALF<T>) mix_part<1>(row, weight, d, found);
  }
};

// Calls `one` with every slot, whole vectors of them at a time: the last one may begin inside the one before.
template <typename T, typename One>
inline void each_slot(int64_t slots, One one) {
  if (slots < WIDTH<T>)
    for (int64_t s = 0; s < slots; ++s) one(s);
  else
    for (int64_t begin = 0; begin < slots; begin += WIDTH<T>)
      for (int64_t q = 0, s = std::min(begin, slots - WIDTH<T>); q < WIDTH<T>; ++q) one(s + q);
}

// The sets of some nodes.
template <typename T>
void take_in(const Sets<T>& sets, const Group<T>& group, int64_t node, int64_t count) {
  constexpr T EMPTY = -std::numeric_limits<T>::infinity();
  const int64_t many = group.many, slots = sets.slots;
  const int32_t length = group.length;
  for (int64_t n = 0; n < count; ++n) {
    const int64_t first = (node + n) * slots;
    const int32_t *members = sets.members + first, *away = sets.distance + first;
    const uint8_t* filled = reinterpret_cast<const uint8_t*>(sets.filled) + first;
    int32_t* __restrict rows = group.rows + n * many;
    T *__restrict alpha = group.alpha + n * many, *__restrict distance = group.distance + n * many;
    each_slot<T>(slots, [=](int64_t s) { rows[s] = members[s] * length; });
    each_slot<T>(slots, [=](int64_t s) { distance[s] = away[s]; });
    each_slot<T>(slots, [=](int64_t s) { alpha[s] = filled[s] ? T(0) : EMPTY; });
    for (int64_t s = slots; s < many; ++s) rows[s] = 0, distance[s] = 0, alpha[s] = EMPTY;
    const T* own = group.tokens + sets.asking[node + n] * group.length;
    for (int64_t d = 0; d < group.length; d += HALF<T>) half(group.asking + n * group.stride + d) = half(own + d);
  }
}

// alpha and the attended tokens of up to WIDTH nodes.
template <typename T>
void attend(const Network<T>& net, const Group<T>& group, int64_t begin, int64_t count) {
  const int64_t many = group.many;
  Vector<T> most[WIDTH<T>] = {}, total[WIDTH<T>] = {};
  T largest[WIDTH<T>], share[WIDTH<T>];
  for (int64_t n = begin; n < begin + count; ++n)
    for (int64_t s = n * many; s < (n + 1) * many; s += HALF<T>)
      half(group.alpha + s) += group.along(group.rows + s, group.asked + n * group.stride);
  for (int64_t n = 0; n < count; ++n) {
    T *alpha = group.alpha + (begin + n) * many, *distance = group.distance + (begin + n) * many;
    Vector<T> top = Vector<T>{} - std::numeric_limits<T>::infinity();
    for (int64_t s = 0; s < many; s += WIDTH<T>) {
      Vector<T> logit = at(alpha + s);
      for (int64_t z = 0; z < net.buckets; ++z)
        logit += at(distance + s) == T(z) ? Vector<T>{} + net.bias[z] : Vector<T>{};
      top = logit > top ? logit : top;
      at(alpha + s) = logit;
    }
    most[n] = top;
  }
  at(largest) = largest_of<T>(most);
  for (int64_t n = 0; n < count; ++n) {
    T* alpha = group.alpha + (begin + n) * many;
    Vector<T> sum = {};
    for (int64_t s = 0; s < many; s += WIDTH<T>) sum += at(alpha + s) = exp_below<T>(at(alpha + s) - largest[n]);
    total[n] = sum;
  }
  at(share) = 1 / sums_of<T>(total);
  for (int64_t n = 0; n < count; ++n) {
    T* alpha = group.alpha + (begin + n) * many;
    for (int64_t s = 0; s < many; s += WIDTH<T>) at(alpha + s) *= share[n];
    group.mix(group.rows + (begin + n) * many, alpha, group.mixed + (begin + n) * group.stride);
  }
}

// The neurons --------------------------------------------------------------------------------------------------------------
//
// A gate is open or closed, so that products with gates are sums of what is open. With long registers every second of them is
// made as one: there are units that only add, and they are idle in a product.

constexpr bool ADDING = BYTES == 64;
constexpr int NODES = BYTES == 64 ? 8 : 4, VECTORS = 3;  // of what neurons are given, made together
template <typename T>
constexpr int64_t TILED = std::max<int64_t>(WIDTH<T>, NODES);
constexpr int STEP = 4, MOST = BYTES == 64 ? 20 : 12;    // rows of the gradient in W_O: made together, in whole steps

// sum + gate * x for gates of 0 and 1.
template <bool ADDED, typename T, typename X>
inline Vector<T> gated(Vector<T> sum, Vector<T> gate, X x) {
  if constexpr (ADDED && ADDING) return gate > 0 ? sum + x : sum;
  return sum + gate * x;
}

// a W_O, rows and neurons filled up with zeros.
template <typename T>
struct Neurons {
  int64_t count, lanes, rows;
  T *signs, *hidden;

  Neurons(const Network<T>& net, Scratch& scratch)
      : count(net.neurons), lanes(rounded_up(count, WIDTH<T>)), rows(rounded_up(net.width, STEP)) {
    signs = scratch.zeros<T>(lanes), hidden = scratch.numbers<T>(rows * lanes);
    std::copy(net.signs, net.signs + count, signs);
    for (int64_t k = 0; k < net.width; ++k) {
      for (int64_t i = 0; i < count; ++i) hidden[k * lanes + i] = signs[i] * net.hidden[k * count + i];
      std::fill(hidden + k * lanes + count, hidden + (k + 1) * lanes, T(0));
    }
    std::fill(hidden + net.width * lanes, hidden + rows * lanes, T(0));
  }

  // C vectors of neurons, or fewer, of NODES nodes: which gates are open, and what these add to the votes.
  template <int C>
  void open(const T* value, int64_t breadth, int64_t width, int64_t first, T* gates, T* votes) const {
    if constexpr (C > 1)
      if (lanes - first < C * WIDTH<T>) return open<C - 1>(value, breadth, width, first, gates, votes);
    Vector<T> sum[NODES][C] = {};
    const Nothing nothing;
    tile<NODES, C, T>(by_rows(value, breadth), {hidden + first, lanes}, WIDTH<T>, width, sum, nothing);
    UNROLL for (int r = 0; r < NODES; ++r) {
      Vector<T> vote = at(votes + r * WIDTH<T>);
      UNROLL for (int q = 0; q < C; ++q) {
        const int64_t i = first + q * WIDTH<T>;
        const Vector<T> gate = sum[r][q] * at(signs + i) > 0 ? all<T>(1) : Vector<T>{};
        vote += sum[r][q] * gate, at(gates + r * lanes + i) = gate;
      }
      at(votes + r * WIDTH<T>) = vote;
    }
  }

  // F of TILED nodes, and which of their gates are open.
  void vote(const T* value, int64_t breadth, int64_t width, T* gates, T* outputs) const {
    T votes[TILED<T> * WIDTH<T>] = {};
    for (int64_t i = 0; i < lanes; i += VECTORS * WIDTH<T>)
      for (int64_t n = 0; n < TILED<T>; n += NODES)
        open<VECTORS>(value + n * breadth, breadth, width, i, gates + n * lanes, votes + n * WIDTH<T>);
    for (int64_t n = 0; n < TILED<T>; n += WIDTH<T>) {
      Vector<T> own[WIDTH<T>];
      UNROLL for (int q = 0; q < WIDTH<T>; ++q) own[q] = at(votes + (n + q) * WIDTH<T>);
      at(outputs + n) = sums_of<T>(own);
    }
  }

  // v = W_O^T A of some nodes: columns from `first` on.
  void back(const T* const* gates, int64_t first, T* found, int64_t breadth) const {
    constexpr int R = ROWS_ALONG, C = COLUMNS_ALONG;
    Vector<T> sum[rounded_up(R * C, WIDTH<T>)] = {};
    const T* right = hidden + first * lanes;
    for (int64_t i = 0; i < lanes; i += WIDTH<T>) {
      Vector<T> here[C];
      UNROLL for (int q = 0; q < C; ++q) here[q] = held<T>(at(right + q * lanes + i));
      UNROLL for (int r = 0; r < R; ++r) {
        const Vector<T> gate = held<T>(at(gates[r] + i));
        UNROLL for (int q = 0; q < C; ++q) {
          Vector<T>& own = sum[r * C + q];
          own = r % 2 ? gated<true, T>(own, gate, here[q]) : gated<false, T>(own, gate, here[q]);
        }
      }
    }
    T row[sizeof sum / sizeof(T)];
    UNROLL for (int g = 0; g < int(sizeof sum / sizeof sum[0]); g += WIDTH<T>) at(row + g) = sums_of<T>(sum + g);
    for (int r = 0; r < R; ++r) std::memcpy(found + r * breadth + first, row + r * C, C * sizeof(T));
  }

  // Rows of the gradient in W_O: the sum over nodes of V A^T, V with the weights of the nodes.
  template <int R>
  void pull(bool added, const T* value, int64_t breadth, const T* const* gates, int64_t nodes, int64_t first, int64_t left,
            T* found) const {
    if constexpr (R > STEP)
      if (left <= R - STEP) return pull<R - STEP>(added, value, breadth, gates, nodes, first, left, found);
    Vector<T> sum[R] = {};
    for (int64_t n = 0; n < nodes; ++n) {
      const Vector<T> gate = at(gates[n] + first);
      const T* own = value + n * breadth;
      UNROLL for (int r = 0; r < R; r += 2) {
        sum[r] = gated<false, T>(sum[r], gate, own[r]);
        sum[r + 1] = gated<true, T>(sum[r + 1], gate, own[r + 1]);
      }
    }
    const int64_t whole = std::min(WIDTH<T>, count - first);
    UNROLL for (int r = 0; r < R; ++r) {
      sum[r] *= at(signs + first);
      T* to = found + r * count + first;
      if (r < left && whole == WIDTH<T>)
        at(to) = added ? at(to) + sum[r] : sum[r];
      else if (r < left)
        for (int64_t i = 0; i < whole; ++i) to[i] = added ? to[i] + sum[r][i] : sum[r][i];
    }
  }
};

// The nodes that have lost something, of whom alone there is a gradient: their places in the group, and what is known of them,
// one after the other. `weight` is that of a node in the loss.
template <typename T>
struct Losing {
  int64_t count = 0, place[TOGETHER];
  const T* gates[TOGETHER];
  T weight[TOGETHER];
  T *value, *back, *mixed, *asking, *pulled, *cross;

  Losing(const Group<T>& group, Scratch& scratch) {
    for (T** one : {&value, &back}) *one = scratch.numbers<T>(TOGETHER * group.breadth);
    for (T** one : {&mixed, &asking, &pulled, &cross}) *one = scratch.numbers<T>(TOGETHER * group.stride);
  }

  void add(const Group<T>& group, const Neurons<T>& neurons, int64_t node, T its_weight) {
    place[count] = node, weight[count] = its_weight, gates[count] = group.gates + node * neurons.lanes;
    for (int64_t k = 0; k < group.breadth; k += WIDTH<T>)
      at(value + count * group.breadth + k) = its_weight * at(group.value + node * group.breadth + k);
    for (int64_t d = 0; d < group.stride; d += WIDTH<T>) {
      at(mixed + count * group.stride + d) = at(group.mixed + node * group.stride + d);
      at(asking + count * group.stride + d) = at(group.asking + node * group.stride + d);
    }
    ++count;
    std::fill(gates + count, gates + rounded_up(count, ROWS_ALONG), gates[count - 1]);
  }
};

// h = sum_s e_s x_s of up to WIDTH nodes, and their part of the gradient in b; e_s carries the weight of the node in the loss.
template <typename T>
void attend_back(const Network<T>& net, const Group<T>& group, const Losing<T>& losing, int64_t begin, int64_t count, T* bias) {
  const int64_t many = group.many, stride = group.stride;
  Vector<T> both[WIDTH<T>] = {};
  T mean[WIDTH<T>];
  for (int64_t n = 0; n < count; ++n) {
    const T *pulled = losing.pulled + (begin + n) * stride, *mixed = losing.mixed + (begin + n) * stride;
    Vector<T> sum = {};
    for (int64_t d = 0; d < stride; d += WIDTH<T>) sum += at(pulled + d) * at(mixed + d);
    both[n] = sum;
  }
  at(mean) = sums_of<T>(both);
  for (int64_t n = 0; n < count; ++n) {
    const int64_t first = losing.place[begin + n] * many;
    const int32_t* rows = group.rows + first;
    const T *alpha = group.alpha + first, *distance = group.distance + first;
    const T *pulled = losing.pulled + (begin + n) * stride, weight = losing.weight[begin + n];
    for (int64_t s = 0; s < many; s += HALF<T>)
      half(group.moved + s) = weight * half(alpha + s) * (group.along(rows + s, pulled) - mean[n]);
    group.mix(rows, group.moved, losing.cross + (begin + n) * stride);
    for (int64_t z = 0; z < net.buckets; ++z) {
      Vector<T> sum = {};
      for (int64_t s = 0; s < many; s += WIDTH<T>) sum += at(distance + s) == T(z) ? at(group.moved + s) : Vector<T>{};
      at(bias + z * WIDTH<T>) += sum;
    }
  }
}

template <typename T>
T slope_of(const Network<T>& net, const Sets<T>& sets, T margin, const Gradient<T>& found) {
  const int64_t dim = net.dim, width = net.width;
  Scratch scratch;
  const Neurons<T> neurons(net, scratch);
  Group<T> group(net, sets, neurons.lanes, scratch);
  Losing<T> losing(group, scratch);
  const int64_t stride = group.stride, breadth = group.breadth, tall = rounded_up(dim, WIDTH<T>);
  T *key = scratch.zeros<T>(width * stride), *value = scratch.zeros<T>(width * stride);
  T *turned_value = scratch.zeros<T>(dim * breadth), *pull = scratch.numbers<T>(dim * stride);
  T *crossed = scratch.zeros<T>(tall * stride), *turned_cross = scratch.numbers<T>(stride * tall);
  T *by_value = scratch.zeros<T>(width * stride), *bias = scratch.zeros<T>(net.buckets * WIDTH<T>);
  fill_up<T>(net.key, width, dim, key, stride), fill_up<T>(net.value, width, dim, value, stride);
  for (int64_t k = 0; k < width; ++k)
    for (int64_t d = 0; d < dim; ++d) turned_value[d * breadth + k] = net.value[k * dim + d];
  product<false, T>(by_columns(net.query, dim), {key, stride}, {pull, stride}, dim, stride, width);
  T loss = 0;
  for (int64_t node = 0; node < sets.batch; node += TOGETHER) {
    const int64_t count = std::min(TOGETHER, sets.batch - node);
    take_in(sets, group, node, count);
    product<false, T>(by_rows<T>(group.asking, stride), {pull, stride}, {group.asked, stride}, count, stride, dim);
    for (int64_t n = 0; n < count; n += WIDTH<T>) attend(net, group, n, std::min(WIDTH<T>, count - n));
    product<false, T>(by_rows<T>(group.mixed, stride), {turned_value, breadth}, {group.value, breadth}, count, breadth, dim);
    for (int64_t n = 0; n < count; n += TILED<T>)
      neurons.vote(group.value + n * breadth, breadth, width, group.gates + n * neurons.lanes, group.outputs + n);
    losing.count = 0;
    for (int64_t n = 0; n < count; ++n) {
      const T label = sets.label[sets.asking[node + n]], lost = std::max(margin - label * group.outputs[n], T(0));
      loss += lost;
      if (lost > 0) losing.add(group, neurons, n, -label / sets.batch);
    }
    for (int64_t k = 0; k < width; k += COLUMNS_ALONG)
      for (int64_t n = 0; n < losing.count; n += ROWS_ALONG) neurons.back(losing.gates + n, k, losing.back + n * breadth, breadth);
    product<false, T>(by_rows<T>(losing.back, breadth), {value, stride}, {losing.pulled, stride}, losing.count, stride, width);
    for (int64_t n = 0; n < losing.count; n += WIDTH<T>)
      attend_back<T>(net, group, losing, n, std::min(WIDTH<T>, losing.count - n), bias);
    for (int64_t i = 0; i < neurons.lanes; i += WIDTH<T>)
      for (int64_t k = 0; k < width; k += MOST)
        neurons.template pull<MOST>(node > 0, losing.value + k, breadth, losing.gates, losing.count, i, width - k,
                                    found.hidden + k * net.neurons);
    for (int64_t n = 0; n < losing.count; ++n)
      for (int64_t k = 0; k < breadth; k += WIDTH<T>) at(losing.back + n * breadth + k) *= losing.weight[n];
    product<true, T>(by_columns<T>(losing.back, breadth), {losing.mixed, stride}, {by_value, stride}, width, stride, losing.count);
    product<true, T>(by_columns<T>(losing.cross, stride), {losing.asking, stride}, {crossed, stride}, dim, stride, losing.count);
  }
  turn<T>({crossed, stride}, {turned_cross, tall}, tall, stride);
  product<false, T>(by_rows<T>(net.key, dim), {crossed, stride}, {found.query, dim}, width, dim, dim);
  product<false, T>(by_rows<T>(net.query, dim), {turned_cross, tall}, {found.key, dim}, width, dim, dim);
  for (int64_t k = 0; k < width; ++k) std::copy(by_value + k * stride, by_value + k * stride + dim, found.value + k * dim);
  for (int64_t z = 0; z < net.buckets; ++z) found.bias[z] = sum_of<T>(at(bias + z * WIDTH<T>));
  return loss / sets.batch;
}

// Given: query (key, dim), key, value, hidden (value, neuron), bias, signs; table (node, dim or more), asking (batch), members
// (batch, slot), distance, filled, label (node); margin. Found: loss, its gradient in query, key, value, hidden, bias. Lanes come
// first in all.
template <typename T>
void slope(Call call) {
  const int64_t dim = call.last(0, 1), width = call.last(0, 2), neurons = call.last(3, 1), buckets = call.last(4, 1);
  const int64_t rows = call.last(6, 2), row = call.last(6, 1), batch = call.last(8, 2), slots = call.last(8, 1);
  const int64_t square = width * dim;
  for (int64_t lane = 0; lane < call.count_given(12); ++lane) {
    const auto of = [=](int place, int64_t size) { return call.given<T>(place) + lane * size; };
    const auto whole = [=](int place, int64_t size) { return call.given<int32_t>(place) + lane * size; };
    const auto to = [=](int place, int64_t size) { return call.found<T>(place) + lane * size; };
    const Network<T> net{of(0, square),  of(1, square),  of(2, square), of(3, width * neurons),
                         of(4, buckets), of(5, neurons), width,         dim, neurons, buckets};
    const Sets<T> sets{of(6, rows * row),
                       whole(7, batch),
                       whole(8, batch * slots),
                       whole(9, batch * slots),
                       whole(11, rows),
                       call.given<bool>(10) + lane * batch * slots,
                       rows,
                       row,
                       batch,
                       slots};
    const Gradient<T> found{to(1, square), to(2, square), to(3, square), to(4, width * neurons), to(5, buckets)};
    *to(0, 1) = slope_of(net, sets, *of(12, 1), found);
  }
}

KERNEL(graph_slope,
        "query T[width dim], key T[width dim], value T[width dim], hidden T[width neuron], bias T[bucket], signs T[neuron], "
        "table T[node row], asking i4[batch], members i4[batch slot], distance i4[batch slot], filled bool[batch slot], "
        "label i4[node], margin T[] "
        "-> loss T[], query T[width dim], key T[width dim], value T[width dim], hidden T[width neuron], bias T[bucket] "
        "where row >= dim",
        slope)
