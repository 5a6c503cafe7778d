// The functions of `elementary.h` over whole arrays, for its tests; arrays have whole registers.

#include "elementary.h"
#include "kernel.h"

template <typename T, Vector<T> FUNCTION(Vector<T>)>
void over(Call call) {
  for (int64_t n = 0; n < call.count_given(0); n += WIDTH<T>)
    at(call.found<T>(0) + n) = FUNCTION(at(call.given<T>(0) + n));
}

template <typename T>
constexpr auto every_exp = over<T, exp_of<T>>;
template <typename T>
constexpr auto every_exp_below = over<T, exp_below<T>>;
template <typename T>
constexpr auto every_log = over<T, log_of<T>>;
template <typename T>
constexpr auto every_log_one_plus = over<T, log_one_plus<T>>;

KERNEL(exp_of, "x T[n] -> y T[n]", every_exp)
KERNEL(exp_below, "x T[n] -> y T[n]", every_exp_below)
KERNEL(log_of, "x T[n] -> y T[n]", every_log)
KERNEL(log_one_plus, "x T[n] -> y T[n]", every_log_one_plus)
