// The random numbers of JAX, from the words of `threefry.h`.
//
// Keys are pairs of words, one pair a row; a row of numbers comes from the counters 0, 1, 2, ... under its key.

#include <cstdint>
#include <cstring>

#include "kernel.h"
#include "threefry.h"
#include "vectors.h"

// Pairs of words, as they lie in memory.
void keep_pairs(Word* found, const Group& low, const Group& high, int64_t count) {
  alignas(LINE) Word lines[2][COUNT];
  std::memcpy(lines[0], &low, sizeof low), std::memcpy(lines[1], &high, sizeof high);
  for (int64_t q = 0; q < count; ++q) found[2 * q] = lines[0][q], found[2 * q + 1] = lines[1][q];
}

template <typename T>
void bits(Call call) {
  const int64_t rows = call.count_given(0) / 2, total = call.count_found(0);
  T* to = call.found<T>(0);
  each(call.given<Word>(0), nullptr, rows, rows ? total / rows : 0,
       [to](int64_t place, const Group& one, const Group& two, int64_t count) {
         if constexpr (sizeof(T) == 8) {  // the first word is the upper one
           keep_pairs(reinterpret_cast<Word*>(to + place), two, one, count);
         } else {
           alignas(LINE) Word mixed[COUNT];
           UNROLL for (int q = 0; q < GROUP; ++q) at(mixed + q * WIDTH<Word>) = one[q] ^ two[q];
           if (sizeof(T) == 4)
             std::memcpy(to + place, mixed, count * sizeof(T));
           else
             for (int64_t q = 0; q < count; ++q) to[place + q] = T(mixed[q]);
         }
       });
}

void keys_of(const Word* keys, const Word* counters, int64_t rows, int64_t length, Word* found) {
  each(keys, counters, rows, length, [found](int64_t place, const Group& one, const Group& two, int64_t count) {
    keep_pairs(found + 2 * place, one, two, count);
  });
}

void split(Call call) {
  const int64_t rows = call.count_given(0) / 2, total = call.count_found(0) / 2;
  keys_of(call.given<Word>(0), nullptr, rows, rows ? total / rows : 0, call.found<Word>(0));
}

void fold(Call call) { keys_of(call.given<Word>(0), call.given<Word>(1), call.count_given(1), 1, call.found<Word>(0)); }

HANDLER(threefry_bits_8, "key u4[2] -> bits u1[...]", bits<uint8_t>)
HANDLER(threefry_bits_16, "key u4[2] -> bits u2[...]", bits<uint16_t>)
HANDLER(threefry_bits_32, "key u4[2] -> bits u4[...]", bits<uint32_t>)
HANDLER(threefry_bits_64, "key u4[2] -> bits u8[...]", bits<uint64_t>)
HANDLER(threefry_split, "key u4[2] -> keys u4[...]", split)
HANDLER(threefry_fold, "key u4[2], data u4[] -> key u4[2]", fold)
