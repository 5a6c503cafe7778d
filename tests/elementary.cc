// The functions of `elementary.h` over whole arrays, for its tests; arrays have whole registers.

#include "elementary.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

template <ffi::DataType KIND, Vector<ffi::NativeType<KIND>> FUNCTION(Vector<ffi::NativeType<KIND>>)>
ffi::Error over(ffi::Buffer<KIND> given, ffi::ResultBuffer<KIND> found) {
  using T = ffi::NativeType<KIND>;
  const int64_t count = given.element_count();
  for (int64_t n = 0; n < count; n += WIDTH<T>) at(found->typed_data() + n) = FUNCTION(at(given.typed_data() + n));
  return ffi::Error::Success();
}

#define HANDLER(name, function, kind)                                    \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, (over<kind, function>), ffi::Ffi::Bind() \
                                    .Arg<ffi::Buffer<kind>>()            \
                                    .Ret<ffi::Buffer<kind>>())
HANDLER(exp_of_float32, exp_of<float>, ffi::F32);
HANDLER(exp_of_float64, exp_of<double>, ffi::F64);
HANDLER(exp_below_float32, exp_below<float>, ffi::F32);
HANDLER(exp_below_float64, exp_below<double>, ffi::F64);
HANDLER(log_of_float32, log_of<float>, ffi::F32);
HANDLER(log_of_float64, log_of<double>, ffi::F64);
HANDLER(log_one_plus_float32, log_one_plus<float>, ffi::F32);
HANDLER(log_one_plus_float64, log_one_plus<double>, ffi::F64);
