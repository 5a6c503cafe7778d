// What a step draws: `places_of_batch` and `sampled_with_distances` of the module `sampling`, which says what is drawn. XLA sorts
// all labelled nodes where a batch takes few of them, and looks for a pick among all picks before it.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernel.h"
#include "scratch.h"
#include "threefry.h"
#include "vectors.h"

// `jax.random.bits(key, (count,), "uint32")`, and as many more as fill a group. `also` is done for every group.
template <typename Also>
void draw_words(const Word* key, int64_t count, Word* found, Also also) {
  each(key, nullptr, 1, count, [&](int64_t place, const Group& one, const Group& two, int64_t) {
    UNROLL for (int q = 0; q < GROUP; ++q) at(found + place + q * WIDTH<Word>) = one[q] ^ two[q];
    also();
  });
}

constexpr int DRAWERS = 256, SHIFT = 23;  // of random numbers of 31 bits, by their upper ones

// The places of a batch in the random order of an epoch: numbers are put into drawers, and only the drawers of these places are
// sorted.
// Given: key, how many nodes are labelled, the first place; of so many `nodes`. Lanes come first in all.
void places(Call call) {
  const int64_t nodes = call.number("nodes"), size = call.last_found(0, 1);
  int low = 0;
  while ((nodes - 1) >> low) ++low;
  const uint32_t below = (uint32_t(1) << low) - 1;
  Scratch scratch;
  uint32_t *marked = scratch.numbers<uint32_t>(rounded_up(nodes, COUNT)), *sorted = scratch.numbers<uint32_t>(nodes);
  for (int64_t lane = 0; lane < call.count_given(1); ++lane) {
    const int64_t count = std::min<int64_t>(call.given<int32_t>(1)[lane], nodes), from = call.given<int32_t>(2)[lane];
    draw_words(call.given<Word>(0) + 2 * lane, count, marked, [] {});
    int32_t begin[DRAWERS + 1] = {};  // where drawers begin in the order; when they are filled, where they end
    for (int64_t n = 0; n < count; ++n) {
      marked[n] = marked[n] >> (low + 1) << low | uint32_t(n);
      ++begin[(marked[n] >> SHIFT) + 1];
    }
    for (int64_t d = 0; d < DRAWERS; ++d) begin[d + 1] += begin[d];
    for (int64_t n = 0; n < count; ++n) sorted[begin[marked[n] >> SHIFT]++] = marked[n];
    const int64_t end = from + size;  // where it passes the last place it begins anew
    for (int64_t d = 0, first = 0; d < DRAWERS; first = begin[d++])
      if (begin[d] > from && first < end || first < end - count) std::sort(sorted + first, sorted + begin[d]);
    for (int64_t n = 0; n < size; ++n) call.found<int32_t>(0)[lane * size + n] = sorted[(from + n) % count] & below;
  }
}

struct Drawn {
  int32_t *members, *distance;
  bool* filled;
};

// Fetches so many bytes into the second cache.
inline void fetch(const void* from, int64_t size) {
  for (int64_t at = 0; at < size; at += LINE) __builtin_prefetch(static_cast<const char*>(from) + at, 0, 2);
}

// One part of the sets of a batch: Floyd's rounds, one after the other. `stamps` tell who took a place last.
void draw_part(const Word* key, uint32_t* words, const int16_t* lists, const int32_t* counts, const uint8_t* distance,
               const int32_t* batch, int64_t nodes, int64_t size, int64_t share, int64_t slots, int32_t* picks, int32_t* many,
               int32_t* stamps, int32_t& stamp, Drawn found) {
  int64_t fetched = 0;  // nodes whose lists and distances are on their way
  const auto ahead = [&] {
    if (fetched == size) return;
    const int64_t next = batch[fetched++];
    fetch(lists + next * nodes, 2 * counts[next]), fetch(distance + next * nodes, nodes);
  };
  draw_words(key, share * size, words, ahead);
  for (int64_t n = 0; n < size; ++n) many[n] = counts[batch[n]];
  for (int64_t s = 0; s < share; ++s)
    for (int64_t n = 0; n < size; ++n) {
      const uint32_t bits = words[s * size + n] >> 9 | 0x3F800000;
      float chance;
      std::memcpy(&chance, &bits, sizeof chance);
      const int32_t upto = many[n] - int32_t(share) + int32_t(s);
      picks[s * size + n] = std::min(int32_t((chance - 1) * float(upto + 1)), upto);
    }
  for (int64_t n = 0; n < size; ++n) {
    const int64_t count = many[n];
    ahead();
    const int16_t* list = lists + batch[n] * nodes;
    const uint8_t* away = distance + batch[n] * nodes;
    int32_t *members = found.members + n * slots, *apart = found.distance + n * slots;
    bool* filled = found.filled + n * slots;
    const auto take = [=](int64_t s, int64_t place) { members[s] = list[place], apart[s] = away[list[place]]; };
    for (int64_t s = 0; s < share; ++s) filled[s] = s < count;
    if (count < share) {
      for (int64_t s = 0; s < share; ++s) take(s, std::min(s, nodes - 1));
      continue;
    }
    const int32_t own = ++stamp;
    for (int64_t s = 0; s < share; ++s) {
      int64_t place = picks[s * size + n];
      if (__builtin_expect(stamps[place] == own, 0)) place = count - share + s;  // seldom: the next picks need not wait
      stamps[place] = own;
      take(s, place);
    }
  }
}

// Given: key, members (part, node, node), their numbers (part, node), distance (node, node), batch. Found: members (batch, slot),
// their distance, whether there is one. Lanes come first in all.
void sets(Call call) {
  const int64_t parts = call.last(2, 2), nodes = call.last(2, 1), size = call.last(4, 1);
  const int64_t slots = call.last_found(0, 1), itself = call.number("itself"), share = (slots - itself) / parts;
  Scratch scratch;
  Word* words = scratch.numbers<Word>(rounded_up(share * size, COUNT));
  int32_t *picks = scratch.numbers<int32_t>(share * size), *many = scratch.numbers<int32_t>(size);
  int32_t *stamps = scratch.zeros<int32_t>(nodes), stamp = 0;
  for (int64_t lane = 0; lane < call.count_given(4) / size; ++lane) {
    const int32_t* own = call.given<int32_t>(4) + lane * size;
    const uint8_t* apart = call.given<uint8_t>(3) + lane * nodes * nodes;
    const int64_t begin = lane * size * slots;
    const Drawn found{call.found<int32_t>(0) + begin, call.found<int32_t>(1) + begin, call.found<bool>(2) + begin};
    if (itself)
      for (int64_t n = 0; n < size; ++n) {
        found.members[n * slots] = own[n], found.filled[n * slots] = true;
        found.distance[n * slots] = apart[own[n] * nodes + own[n]];
      }
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t from = lane * parts + part, slot = itself + part * share;
      const Keys folds = folded(call.given<Word>(0) + 2 * lane, part);
      const Word key[] = {folds.first[0], folds.second[0]};
      draw_part(key, words, call.given<int16_t>(1) + from * nodes * nodes,
                call.given<int32_t>(2) + from * nodes, apart, own, nodes, size, share, slots, picks, many, stamps, stamp,
                {found.members + slot, found.distance + slot, found.filled + slot});
    }
  }
}

HANDLER(graph_places,
        "key u4[2], first i4[], begin i4[] "
        "-> places i4[size] "
        "where nodes > 0",
        places)
HANDLER(graph_sets,
        "key u4[2], members i2[part node node], count i4[part node], distance u1[node node], nodes i4[batch] "
        "-> members i4[batch slot], distance i4[batch slot], filled bool[batch slot] "
        "where slot >= itself, (slot - itself) % part == 0",
        sets)
