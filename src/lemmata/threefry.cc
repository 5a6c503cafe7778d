// The random numbers of JAX: Threefry-2x32 with 20 rounds (`threefry.h`).
//
// Keys are pairs of words, one pair a row; a row of numbers comes from the counters 0, 1, 2, ... under its key.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "threefry.h"
#include "vectors.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
constexpr int MANY = 4;
constexpr int64_t COUNT = MANY * WIDTH<Word>;
using Group = Words<MANY>;

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
void keep_pairs(Word* found, const Group& low, const Group& high, int64_t count) {
  alignas(LINE) Word lines[2][COUNT];
  std::memcpy(lines[0], &low, sizeof low), std::memcpy(lines[1], &high, sizeof high);
  for (int64_t q = 0; q < count; ++q) found[2 * q] = lines[0][q], found[2 * q + 1] = lines[1][q];
}

template <ffi::DataType KIND>
ffi::Error bits(ffi::Buffer<ffi::U32> keys, ffi::ResultBuffer<KIND> found) {
  using T = ffi::NativeType<KIND>;
  const int64_t rows = keys.element_count() / 2, total = found->element_count();
  T* to = found->typed_data();
  each(keys.typed_data(), nullptr, rows, rows ? total / rows : 0,
       [to](int64_t place, const Group& one, const Group& two, int64_t count) {
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
  return ffi::Error::Success();
}

ffi::Error keys_of(const Word* keys, const Word* counters, int64_t rows, int64_t length, Word* found) {
  each(keys, counters, rows, length, [found](int64_t place, const Group& one, const Group& two, int64_t count) {
    keep_pairs(found + 2 * place, one, two, count);
  });
  return ffi::Error::Success();
}

ffi::Error split(ffi::Buffer<ffi::U32> keys, ffi::ResultBuffer<ffi::U32> found) {
  const int64_t rows = keys.element_count() / 2, total = found->element_count() / 2;
  return keys_of(keys.typed_data(), nullptr, rows, rows ? total / rows : 0, found->typed_data());
}

ffi::Error fold(ffi::Buffer<ffi::U32> keys, ffi::Buffer<ffi::U32> data, ffi::ResultBuffer<ffi::U32> found) {
  return keys_of(keys.typed_data(), data.typed_data(), data.element_count(), 1, found->typed_data());
}

#define FROM_KEYS ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::U32>>()
XLA_FFI_DEFINE_HANDLER_SYMBOL(threefry_bits_8, bits<ffi::U8>, FROM_KEYS.Ret<ffi::Buffer<ffi::U8>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(threefry_bits_16, bits<ffi::U16>, FROM_KEYS.Ret<ffi::Buffer<ffi::U16>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(threefry_bits_32, bits<ffi::U32>, FROM_KEYS.Ret<ffi::Buffer<ffi::U32>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(threefry_bits_64, bits<ffi::U64>, FROM_KEYS.Ret<ffi::Buffer<ffi::U64>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(threefry_split, split, FROM_KEYS.Ret<ffi::Buffer<ffi::U32>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(threefry_fold, fold,
                              FROM_KEYS.Arg<ffi::Buffer<ffi::U32>>().Ret<ffi::Buffer<ffi::U32>>());
