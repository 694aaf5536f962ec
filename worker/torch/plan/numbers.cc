#include "worker/torch/plan/numbers.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace lockstep::exported {
namespace {

using c10::IValue;
using Numbers = std::span<const IValue>;

constexpr double kPastInt64 = 0x1p63;

[[noreturn]] void too_large() {
  throw std::runtime_error("computes with a size that is too large");
}

bool is_whole(const IValue& v) {
  return v.isInt() || v.isBool();
}

int64_t whole(const IValue& v) {
  if (v.isBool()) return v.toBool() ? 1 : 0;
  return v.toInt();
}

double real(const IValue& v) {
  return is_whole(v) ? static_cast<double>(whole(v)) : v.toDouble();
}

bool is_true(const IValue& v) {
  return is_whole(v) ? whole(v) != 0 : v.toDouble() != 0;
}

IValue whole_of(double value) {
  if (!(value >= -kPastInt64 && value < kPastInt64)) too_large();
  return static_cast<int64_t>(value);
}

bool are_whole(Numbers n) {
  return is_whole(n[0]) && is_whole(n[1]);
}

IValue add(Numbers n) {
  if (!are_whole(n)) return real(n[0]) + real(n[1]);
  int64_t out = 0;
  if (__builtin_add_overflow(whole(n[0]), whole(n[1]), &out)) too_large();
  return out;
}

int64_t difference(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_sub_overflow(a, b, &out)) too_large();
  return out;
}

IValue sub(Numbers n) {
  if (!are_whole(n)) return real(n[0]) - real(n[1]);
  return difference(whole(n[0]), whole(n[1]));
}

IValue mul(Numbers n) {
  if (!are_whole(n)) return real(n[0]) * real(n[1]);
  int64_t out = 0;
  if (__builtin_mul_overflow(whole(n[0]), whole(n[1]), &out)) too_large();
  return out;
}

void check_divisor(const IValue& divisor) {
  if (real(divisor) == 0) throw std::runtime_error("divides by zero");
}

IValue floordiv(Numbers n) {
  check_divisor(n[1]);
  if (!are_whole(n)) return std::floor(real(n[0]) / real(n[1]));
  const int64_t a = whole(n[0]);
  const int64_t b = whole(n[1]);
  if (b == -1) return difference(0, a);
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

IValue mod(Numbers n) {
  check_divisor(n[1]);
  if (!are_whole(n)) return real(n[0]) - std::floor(real(n[0]) / real(n[1])) * real(n[1]);
  const int64_t b = whole(n[1]);
  if (b == -1) return int64_t{0};
  const int64_t rest = whole(n[0]) % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

IValue truediv(Numbers n) {
  check_divisor(n[1]);
  return real(n[0]) / real(n[1]);
}

IValue float_pow(Numbers n) {
  return std::pow(real(n[0]), real(n[1]));
}

IValue pow(Numbers n) {
  if (!are_whole(n) || whole(n[1]) < 0) return float_pow(n);
  int64_t out = 1;
  const int64_t base = whole(n[0]);
  if (base == 0 || base == 1) return whole(n[1]) == 0 ? int64_t{1} : base;
  if (base == -1) return whole(n[1]) % 2 == 0 ? int64_t{1} : int64_t{-1};
  for (int64_t i = 0; i < whole(n[1]); ++i)
    if (__builtin_mul_overflow(out, base, &out)) too_large();
  return out;
}

IValue neg(Numbers n) {
  if (!is_whole(n[0])) return -real(n[0]);
  return difference(0, whole(n[0]));
}

IValue sqrt(Numbers n) {
  return std::sqrt(real(n[0]));
}

IValue ceil(Numbers n) {
  return is_whole(n[0]) ? IValue(whole(n[0])) : whole_of(std::ceil(real(n[0])));
}

IValue floor(Numbers n) {
  return is_whole(n[0]) ? IValue(whole(n[0])) : whole_of(std::floor(real(n[0])));
}

IValue trunc(Numbers n) {
  return is_whole(n[0]) ? IValue(whole(n[0])) : whole_of(std::trunc(real(n[0])));
}

// Half-way cases go to the even number, as in Python.
IValue round(Numbers n) {
  return is_whole(n[0]) ? IValue(whole(n[0])) : whole_of(std::nearbyint(real(n[0])));
}

IValue to_float(Numbers n) {
  return real(n[0]);
}

bool is_less(const IValue& a, const IValue& b) {
  if (is_whole(a) && is_whole(b)) return whole(a) < whole(b);
  return real(a) < real(b);
}

bool is_equal(const IValue& a, const IValue& b) {
  if (is_whole(a) && is_whole(b)) return whole(a) == whole(b);
  return real(a) == real(b);
}

IValue eq(Numbers n) {
  return is_equal(n[0], n[1]);
}
IValue ne(Numbers n) {
  return !is_equal(n[0], n[1]);
}
IValue lt(Numbers n) {
  return is_less(n[0], n[1]);
}
IValue le(Numbers n) {
  return is_less(n[0], n[1]) || is_equal(n[0], n[1]);
}
IValue gt(Numbers n) {
  return is_less(n[1], n[0]);
}
IValue ge(Numbers n) {
  return is_less(n[1], n[0]) || is_equal(n[0], n[1]);
}

IValue largest(Numbers n) {
  return is_less(n[0], n[1]) ? n[1] : n[0];
}
IValue smallest(Numbers n) {
  return is_less(n[1], n[0]) ? n[1] : n[0];
}

IValue logical_not(Numbers n) {
  return !is_true(n[0]);
}

// On truth values: Python's & and | on the conditions of sizes.
IValue logical_and(Numbers n) {
  return is_true(n[0]) && is_true(n[1]);
}
IValue logical_or(Numbers n) {
  return is_true(n[0]) || is_true(n[1]);
}

IValue choose(Numbers n) {
  return is_true(n[0]) ? n[1] : n[2];
}

constexpr PythonFunction kFunctions[] = {
    {"_operator.add", 2, add},
    {"_operator.sub", 2, sub},
    {"_operator.mul", 2, mul},
    {"_operator.floordiv", 2, floordiv},
    {"_operator.mod", 2, mod},
    {"_operator.neg", 1, neg},
    {"_operator.truediv", 2, truediv},
    {"_operator.pow", 2, pow},
    {"_operator.eq", 2, eq},
    {"_operator.ne", 2, ne},
    {"_operator.lt", 2, lt},
    {"_operator.le", 2, le},
    {"_operator.gt", 2, gt},
    {"_operator.ge", 2, ge},
    {"_operator.and_", 2, logical_and},
    {"_operator.or_", 2, logical_or},
    {"_operator.not_", 1, logical_not},
    {"math.ceil", 1, ceil},
    {"math.floor", 1, floor},
    {"math.trunc", 1, trunc},
    {"math.sqrt", 1, sqrt},
    {"math.pow", 2, float_pow},
    {"round", 1, round},
    {"torch.sym_int", 1, trunc},
    {"torch.sym_float", 1, to_float},
    {"torch.sym_max", 2, largest},
    {"torch.sym_min", 2, smallest},
    {"torch.sym_not", 1, logical_not},
    {"torch.sym_sqrt", 1, sqrt},
    {"torch._sym_sqrt", 1, sqrt},
    {"torch.sym_ite", 3, choose},
};

}  // namespace

const PythonFunction* find_python_function(std::string_view target) {
  const auto* found = std::ranges::find(kFunctions, target, &PythonFunction::target);
  return found == std::end(kFunctions) ? nullptr : found;
}

}  // namespace lockstep::exported
