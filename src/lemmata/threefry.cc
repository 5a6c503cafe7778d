// The random numbers of JAX, from the words of `threefry.h`.
//
// Keys are pairs of words, one pair a row; a row of numbers comes from the counters 0, 1, 2, ... under its key.

#include <cstdint>
#include <cstring>

#include "threefry.h"
#include "vectors.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// Pairs of words, as they lie in memory.
void keep_pairs(Word* found, const Words& low, const Words& high, int64_t count) {
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
  return ffi::Error::Success();
}

ffi::Error keys_of(const Word* keys, const Word* counters, int64_t rows, int64_t length, Word* found) {
  each(keys, counters, rows, length, [found](int64_t place, const Words& one, const Words& two, int64_t count) {
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
