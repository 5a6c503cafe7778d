// Memory for what a kernel makes on its way, kept by its thread from call to call: what is given back to the system has to be
// fetched page by page again, which takes longer than most steps.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "vectors.h"

class Scratch {
  struct alignas(LINE) Line {
    char bytes[LINE];
  };
  struct Piece {
    std::unique_ptr<Line[]> lines;
    int64_t size;
  };
  static constexpr int64_t LEAST = (1 << 20) / LINE;
  std::vector<Piece>& pieces;
  size_t piece = 0;
  int64_t used = 0;

  static std::vector<Piece>& kept() {
    static thread_local std::vector<Piece> own;
    return own;
  }

 public:
  Scratch() : pieces(kept()) {}
  Scratch(const Scratch&) = delete;

  // Numbers that begin with a cache line, until the scratch is gone; whatever they are before they are written. A thread has
  // one scratch at a time.
  template <typename T>
  T* numbers(int64_t count) {
    const int64_t size = (count * sizeof(T) + LINE - 1) / LINE;
    for (; piece < pieces.size() && used + size > pieces[piece].size; ++piece) used = 0;
    if (piece == pieces.size()) {
      const int64_t whole = std::max(size, LEAST);
      pieces.push_back({std::unique_ptr<Line[]>(new Line[whole]), whole});
    }
    used += size;
    return reinterpret_cast<T*>(pieces[piece].lines.get() + used - size);
  }
  template <typename T>
  T* zeros(int64_t count) {
    T* found = numbers<T>(count);
    std::fill(found, found + count, T{});
    return found;
  }
};
