// Threefry-2x32 with 20 rounds (Salmon et al. 2011), several counters at a time: the words that JAX makes of a key.

#pragma once

#include <algorithm>
#include <cstdint>

#include "vectors.h"

using Word = uint32_t;

constexpr int64_t MANY = 4, COUNT = MANY * WIDTH<Word>;  // registers whose rounds go side by side, and their words
struct Words {
  Vector<Word> of[MANY];
  Vector<Word>& operator[](int q) { return of[q]; }
  const Vector<Word>& operator[](int q) const { return of[q]; }
};

template <int TURN>
inline void round_of(Words& one, Words& two) {
  UNROLL for (int q = 0; q < MANY; ++q) {
    one[q] += two[q];
    two[q] = one[q] ^ ((two[q] << TURN) | (two[q] >> (32 - TURN)));
  }
}

inline void add(Words& one, const Words& other, Word more = 0) {
  UNROLL for (int q = 0; q < MANY; ++q) one[q] += other[q] + more;
}

// The words of the counters (0, two) under their keys (first, second).
inline void threefry(const Words& first, const Words& second, Words& one, Words& two) {
  Words third;
  UNROLL for (int q = 0; q < MANY; ++q) third[q] = first[q] ^ second[q] ^ Word(0x1BD11BDA);
  const auto even = [&] { round_of<13>(one, two), round_of<15>(one, two), round_of<26>(one, two), round_of<6>(one, two); };
  const auto odd = [&] { round_of<17>(one, two), round_of<29>(one, two), round_of<16>(one, two), round_of<24>(one, two); };
  one = first, add(two, second);
  even(), add(one, second), add(two, third, 1);
  odd(), add(one, third), add(two, first, 2);
  even(), add(one, first), add(two, second, 3);
  odd(), add(one, second), add(two, third, 4);
  even(), add(one, third), add(two, first, 5);
}

// Calls `keep(place, one, two, count)` with the words of all rows, in order of their places.
template <typename Keep>
void each(const Word* keys, const Word* counters, int64_t rows, int64_t length, Keep keep) {
  Words first, second, one, two;
  alignas(LINE) Word own[COUNT];
  for (int64_t q = 0; q < COUNT; ++q) own[q] = q;
  const int64_t total = rows * length;
  for (int64_t place = 0; place < total;) {
    const int64_t row = place / length, begin = place % length;
    int64_t count;
    if (!counters && (length - begin >= COUNT || rows == 1)) {  // all from one row
      count = std::min(COUNT, length - begin);
      UNROLL for (int q = 0; q < MANY; ++q) {
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
      UNROLL for (int q = 0; q < MANY; ++q) {
        const int64_t at_q = q * WIDTH<Word>;
        first[q] = at(lines[0] + at_q), second[q] = at(lines[1] + at_q), two[q] = at(lines[2] + at_q);
      }
    }
    threefry(first, second, one, two);
    keep(place, one, two, count);
    place += count;
  }
}
