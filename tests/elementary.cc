// The functions of `elementary.h` over whole arrays, for its tests; arrays have whole registers.

#include "elementary.h"
#include "kernel.h"

template <typename T, Vector<T> FUNCTION(Vector<T>)>
void over(Call call) {
  for (int64_t n = 0; n < call.count_given(0); n += WIDTH<T>)
    at(call.found<T>(0) + n) = FUNCTION(at(call.given<T>(0) + n));
}

HANDLER(exp_of_float32, over<float, exp_of<float>>)
HANDLER(exp_of_float64, over<double, exp_of<double>>)
HANDLER(exp_below_float32, over<float, exp_below<float>>)
HANDLER(exp_below_float64, over<double, exp_below<double>>)
HANDLER(log_of_float32, over<float, log_of<float>>)
HANDLER(log_of_float64, over<double, log_of<double>>)
HANDLER(log_one_plus_float32, over<float, log_one_plus<float>>)
HANDLER(log_one_plus_float64, over<double, log_one_plus<double>>)
