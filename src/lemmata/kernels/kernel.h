// How XLA calls a kernel: its arguments, results and numbers, by place. Read from XLA's interface in C, as the one in C++ takes
// the compiler longer than most kernels.

#pragma once

#include <cstdint>
#include <cstring>

#include "xla/ffi/api/c_api.h"

class Call {
  const XLA_FFI_CallFrame* frame;

  static const XLA_FFI_Buffer& buffer(void* thing) { return *static_cast<XLA_FFI_Buffer*>(thing); }

 public:
  explicit Call(const XLA_FFI_CallFrame* frame) : frame(frame) {}

  // The numbers of an argument, and of a result.
  template <typename T>
  const T* given(int place) const {
    return static_cast<const T*>(buffer(frame->args.args[place]).data);
  }
  template <typename T>
  T* found(int place) const {
    return static_cast<T*>(buffer(frame->rets.rets[place]).data);
  }

  // The sizes of an argument, and the last ones (1: the last), as lanes may come first; how many numbers an argument has, and a
  // result.
  const int64_t* shape(int place) const { return buffer(frame->args.args[place]).dims; }
  int64_t last(int place, int from_end) const { return last_of(frame->args.args[place], from_end); }
  int64_t last_found(int place, int from_end) const { return last_of(frame->rets.rets[place], from_end); }
  int64_t count_given(int place) const { return count(frame->args.args[place]); }
  int64_t count_found(int place) const { return count(frame->rets.rets[place]); }

  // A whole number that the call was made with.
  int64_t number(const char* name) const {
    for (int64_t n = 0; n < frame->attrs.size; ++n) {
      const XLA_FFI_ByteSpan* own = frame->attrs.names[n];
      if (own->len == std::strlen(name) && !std::memcmp(own->ptr, name, own->len))
        return *static_cast<const int64_t*>(static_cast<const XLA_FFI_Scalar*>(frame->attrs.attrs[n])->value);
    }
    return 0;
  }

 private:
  static int64_t last_of(void* thing, int from_end) { return buffer(thing).dims[buffer(thing).rank - from_end]; }
  static int64_t count(void* thing) {
    int64_t found = 1;
    for (int64_t d = 0; d < buffer(thing).rank; ++d) found *= buffer(thing).dims[d];
    return found;
  }
};

// XLA asks a handler for its version before it is called for the first time.
template <typename Function>
XLA_FFI_Error* called(XLA_FFI_CallFrame* frame, Function function) {
  if (frame->extension_start && frame->extension_start->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata* told = reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start)->metadata;
    told->api_version.major_version = XLA_FFI_API_MAJOR;
    told->api_version.minor_version = XLA_FFI_API_MINOR;
    told->traits = 0;
    return nullptr;
  }
  function(Call(frame));
  return nullptr;
}

// Declares a handler of this name that calls `void function(Call)`, and what it takes and gives (`lemmata.kernels` reads that
// text, and calls the handler with nothing else).
#define HANDLER(name, signature, ...) \
  extern "C" XLA_FFI_Error* name(XLA_FFI_CallFrame* frame) { return called(frame, __VA_ARGS__); }

// The same for both precisions: `name_float32` calls `function<float>`.
#define KERNEL(name, signature, function) \
  HANDLER(name##_float32, signature, function<float>) HANDLER(name##_float64, signature, function<double>)
