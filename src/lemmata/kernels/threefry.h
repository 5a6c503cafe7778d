// The rounds of Threefry-2x32 (Salmon et al. 2011), which the random numbers of JAX are made with, for several counters at a time.

#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "vectors.h"

using Word = uint32_t;

// Registers whose rounds go side by side.
template <int MANY>
struct Words {
  Vector<Word> of[MANY];
  Vector<Word>& operator[](int q) { return of[q]; }
  const Vector<Word>& operator[](int q) const { return of[q]; }
};

// Bits of words moved up, the uppermost to the bottom. Processors without an instruction for it move whole bytes at once.
template <int TURN, int... BYTE>
inline Vector<Word> bytes_turned(Vector<Word> words, std::integer_sequence<int, BYTE...>) {
  const auto bytes = (Register<uint8_t>::type)words;
  return (Vector<Word>)shuffled<(BYTE / 4 * 4 + (BYTE + 4 - TURN / 8) % 4)...>(bytes, bytes);
}
template <int TURN>
inline Vector<Word> turned(Vector<Word> words) {
#if defined(__SSSE3__) && !defined(__AVX512F__)
  if constexpr (TURN % 8 == 0) return bytes_turned<TURN>(words, std::make_integer_sequence<int, BYTES>{});
#endif
  return (words << TURN) | (words >> (32 - TURN));
}

template <int TURN, int MANY>
__attribute__((always_inline)) inline void round_of(Words<MANY>& one, Words<MANY>& two) {
  UNROLL for (int q = 0; q < MANY; ++q) {
    one[q] += two[q];
    two[q] = one[q] ^ turned<TURN>(two[q]);
  }
}

template <int MANY>
__attribute__((always_inline)) inline void add(Words<MANY>& one, const Words<MANY>& other, Word more = 0) {
  UNROLL for (int q = 0; q < MANY; ++q) one[q] += other[q] + more;
}

// The words of the counters (0, two) under their keys (first, second).
template <int MANY>
__attribute__((always_inline)) inline void threefry(const Words<MANY>& first, const Words<MANY>& second, Words<MANY>& one,
                                                    Words<MANY>& two) {
  Words<MANY> third;
  UNROLL for (int q = 0; q < MANY; ++q) third[q] = first[q] ^ second[q] ^ Word(0x1BD11BDA);
  const auto even = [&]() __attribute__((always_inline)) {
    round_of<13>(one, two), round_of<15>(one, two), round_of<26>(one, two), round_of<6>(one, two);
  };
  const auto odd = [&]() __attribute__((always_inline)) {
    round_of<17>(one, two), round_of<29>(one, two), round_of<16>(one, two), round_of<24>(one, two);
  };
  one = first, add(two, second);
  even(), add(one, second), add(two, third, 1);
  odd(), add(one, third), add(two, first, 2);
  even(), add(one, first), add(two, second, 3);
  odd(), add(one, second), add(two, third, 4);
  even(), add(one, third), add(two, first, 5);
}

// Numbers -------------------------------------------------------------------------------------------------------------------

constexpr int GROUP = 4;  // registers of counters whose words are made together
constexpr int64_t COUNT = GROUP * WIDTH<Word>;
using Group = Words<GROUP>;

// Calls `keep(place, one, two, count)` with the words of all rows, in order of their places.
template <typename Keep>
void each(const Word* keys, const Word* counters, int64_t rows, int64_t length, Keep keep) {
  Group first, second, one, two;
  alignas(LINE) Word own[COUNT];
  for (int64_t q = 0; q < COUNT; ++q) own[q] = q;
  const int64_t total = rows * length;
  for (int64_t place = 0; place < total;) {
    const int64_t row = place / length, begin = place % length;
    int64_t count;
    if (!counters && (length - begin >= COUNT || rows == 1)) {  // all from one row
      count = std::min(COUNT, length - begin);
      UNROLL for (int q = 0; q < GROUP; ++q) {
        first[q] = Vector<Word>{} + keys[2 * row], second[q] = Vector<Word>{} + keys[2 * row + 1];
        two[q] = at(own + q * WIDTH<Word>) + Word(begin);
      }
    } else {  // from several
      alignas(LINE) Word lines[3][COUNT] = {};
      count = std::min(COUNT, total - place);
      for (int64_t q = 0, r = row, n = begin; q < count; ++q) {
        lines[0][q] = keys[2 * r], lines[1][q] = keys[2 * r + 1], lines[2][q] = counters ? counters[place + q] : Word(n);
        if (++n == length) n = 0, ++r;
      }
      UNROLL for (int q = 0; q < GROUP; ++q) {
        const int64_t at_q = q * WIDTH<Word>;
        first[q] = at(lines[0] + at_q), second[q] = at(lines[1] + at_q), two[q] = at(lines[2] + at_q);
      }
    }
    threefry(first, second, one, two);
    keep(place, one, two, count);
    place += count;
  }
}

// Keys ---------------------------------------------------------------------------------------------------------------------

constexpr int64_t SIDE = WIDTH<Word>;  // keys that lie side by side in a register

struct Keys {
  Vector<Word> first, second;
};

// Calls `keep(n, one, two)` with both words of the counters `from` to `to` under the keys, and of as many more as fill a group.
// (A condition would let the compiler make one counter after another, which takes a third longer.)
template <int MANY = GROUP, typename Keep>
inline void each_word(const Keys& keys, int64_t from, int64_t to, Keep keep) {
  Words<MANY> first, second, one, two;
  UNROLL for (int q = 0; q < MANY; ++q) first[q] = keys.first, second[q] = keys.second;
  for (int64_t n = from; n < to; n += MANY) {
    UNROLL for (int q = 0; q < MANY; ++q) two[q] = Vector<Word>{} + Word(n + q);
    threefry(first, second, one, two);
    UNROLL for (int q = 0; q < MANY; ++q) keep(n + q, one[q], two[q]);
  }
}

// The same where there may be many counters: as many together as registers hold.
template <typename Keep>
inline void each_of_many(const Keys& keys, int64_t from, int64_t to, Keep keep) {
  constexpr int MANY = BYTES == 64 ? 10 : GROUP;
  const int64_t rest = to - (to - from) % MANY;
  each_word<MANY>(keys, from, rest, keep), each_word(keys, rest, to, keep);
}

// `jax.random.fold_in` of one key with the numbers from `n` on.
inline Keys folded(const Word* key, Word n) {
  alignas(LINE) Word own[SIDE];
  for (int64_t q = 0; q < SIDE; ++q) own[q] = n + q;
  Words<1> first, second, one, two;
  first[0] = Vector<Word>{} + key[0], second[0] = Vector<Word>{} + key[1], two[0] = at(own);
  threefry(first, second, one, two);
  return {one[0], two[0]};
}

// One of the keys that `jax.random.split` makes of each.
inline Keys part_of(const Keys& keys, int64_t which) {
  Keys found;
  each_word<1>(keys, which, which + 1, [&](int64_t, const Vector<Word>& one, const Vector<Word>& two) {
    found = {one, two};
  });
  return found;
}

// Numbers that belong to the keys, one to each: row n of an array of such rows.
template <typename T>
struct BesideKeys {
  typedef T type __attribute__((vector_size(SIDE * sizeof(T)), aligned(alignof(T)), may_alias));
};
template <typename T>
using Row = typename BesideKeys<T>::type;

template <typename T>
inline Row<T>& row(T* rows, int64_t n) {
  return *reinterpret_cast<Row<T>*>(rows + n * SIDE);
}
template <typename T>
inline const Row<T>& row(const T* rows, int64_t n) {
  return *reinterpret_cast<const Row<T>*>(rows + n * SIDE);
}

// For each of some keys a number that belongs to it: `places` says which key.
template <typename Numbers>
inline Numbers picked(const Numbers& from, const Row<int32_t>& places) {
#if defined(__clang__)
  Numbers found;
  for (int64_t q = 0; q < SIDE; ++q) found[q] = from[places[q]];
  return found;
#else
  return __builtin_shuffle(from, places);
#endif
}

// `jax.random.uniform` of both words of a counter.
template <typename T>
inline Row<T> uniform(const Vector<Word>& one, const Vector<Word>& two) {
  if constexpr (sizeof(T) == 4) {
    return (Row<T>)(((one ^ two) >> 9) | 0x3F800000u) - 1;
  } else {
    const auto wide = [](const Vector<Word>& word) { return __builtin_convertvector(word, Row<uint64_t>); };
    return (Row<T>)(((wide(one) << 32 | wide(two)) >> 12) | 0x3FF0000000000000u) - 1;
  }
}
