// The random numbers of JAX: Threefry-2x32 with 20 rounds (Salmon et al. 2011), several counters at a time.
//
// Keys are pairs of words, one pair a row; a row of numbers comes from the counters 0, 1, 2, ... under its key.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernel.h"
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

// Pairs of words, as they lie in memory.
void keep_pairs(Word* found, const Words& low, const Words& high, int64_t count) {
  alignas(LINE) Word lines[2][COUNT];
  std::memcpy(lines[0], &low, sizeof low), std::memcpy(lines[1], &high, sizeof high);
  for (int64_t q = 0; q < count; ++q) found[2 * q] = lines[0][q], found[2 * q + 1] = lines[1][q];
}

template <typename T>
void bits(Call call) {
  const int64_t rows = call.count_given(0) / 2, total = call.count_found(0);
  T* to = call.found<T>(0);
  each(call.given<Word>(0), nullptr, rows, rows ? total / rows : 0,
       [to](int64_t place, const Words& one, const Words& two, int64_t count) {
         if constexpr (sizeof(T) == 8) {  // the first word is the upper one
           keep_pairs(reinterpret_cast<Word*>(to + place), two, one, count);
         } else {
           alignas(LINE) Word mixed[COUNT];
           UNROLL for (int q = 0; q < MANY; ++q) at(mixed + q * WIDTH<Word>) = one[q] ^ two[q];
           if (sizeof(T) == 4)
             std::memcpy(to + place, mixed, count * sizeof(T));
           else
             for (int64_t q = 0; q < count; ++q) to[place + q] = T(mixed[q]);
         }
       });
}

void keys_of(const Word* keys, const Word* counters, int64_t rows, int64_t length, Word* found) {
  each(keys, counters, rows, length, [found](int64_t place, const Words& one, const Words& two, int64_t count) {
    keep_pairs(found + 2 * place, one, two, count);
  });
}

void split(Call call) {
  const int64_t rows = call.count_given(0) / 2, total = call.count_found(0) / 2;
  keys_of(call.given<Word>(0), nullptr, rows, rows ? total / rows : 0, call.found<Word>(0));
}

void fold(Call call) { keys_of(call.given<Word>(0), call.given<Word>(1), call.count_given(1), 1, call.found<Word>(0)); }

HANDLER(threefry_bits_8, bits<uint8_t>)
HANDLER(threefry_bits_16, bits<uint16_t>)
HANDLER(threefry_bits_32, bits<uint32_t>)
HANDLER(threefry_bits_64, bits<uint64_t>)
HANDLER(threefry_split, split)
HANDLER(threefry_fold, fold)
