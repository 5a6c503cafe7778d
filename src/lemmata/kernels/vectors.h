// What kernels share: registers of several numbers, and arrays that begin with a cache line.

#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__AVX512F__)
constexpr int BYTES = 64;
#elif defined(__AVX__)
constexpr int BYTES = 32;
#else
constexpr int BYTES = 16;
#endif
constexpr int LINE = 64;  // bytes of a cache line

#define UNROLL _Pragma("GCC unroll 16")

// A vector register, to be read from and written to any array of numbers.
template <typename T, int SIZE = BYTES>
struct Register {
  typedef T type __attribute__((vector_size(SIZE), aligned(alignof(T)), may_alias));
};
template <typename T>
using Vector = typename Register<T>::type;
template <typename T>
constexpr int64_t WIDTH = BYTES / sizeof(T);

template <typename T>
inline Vector<T>& at(T* place) {
  return *reinterpret_cast<Vector<T>*>(place);
}
template <typename T>
inline const Vector<T>& at(const T* place) {
  return *reinterpret_cast<const Vector<T>*>(place);
}

// The same, kept in a register: without it GCC would read a factor from memory anew for every product.
template <typename T>
inline Vector<T> held(Vector<T> vector) {
#if defined(__x86_64__)
  asm("" : "+v"(vector));
#endif
  return vector;
}

// The elements of two vectors at the given places. Places of the second vector follow those of the first. GCC 11 has only the
// first of the two functions, Clang only the second.
template <int... PLACE, typename V>
inline V shuffled(V a, V b) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, PLACE...);
#else
  const decltype(a == b) places = {PLACE...};
  return __builtin_shuffle(a, b, places);
#endif
}

template <typename T>
inline T sum_of(Vector<T> vector) {
  T part[WIDTH<T>];
  std::memcpy(part, &vector, sizeof part);
  for (int64_t half = WIDTH<T> / 2; half; half /= 2)
    for (int64_t q = 0; q < half; ++q) part[q] += part[q + half];
  return part[0];
}

// Zeros that begin with a cache line.
template <typename T>
class Zeros {
  struct alignas(LINE) Line {
    char bytes[LINE];
  };
  std::vector<Line> lines;

 public:
  explicit Zeros(int64_t count) : lines((count * sizeof(T) + LINE - 1) / LINE, Line{}) {}
  operator T*() { return reinterpret_cast<T*>(lines.data()); }
};

constexpr int64_t rounded_up(int64_t size, int64_t step) { return (size + step - 1) / step * step; }
