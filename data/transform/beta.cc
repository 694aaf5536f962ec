#include "data/transform/beta.h"

#include <bit>
#include <cmath>

#include "comm/base/chance.h"

namespace lockstep::data {
namespace {

constexpr double kLn2High = 0x1.62e42feep-1;  // whose last bits are 0: times an exponent, exact
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kLeastExponent = -700;  // below it e^x is nothing next to 1

// REQUIRES: x is a normal number above 0. With x = m 2^e and f = (m - 1) / (m + 1), which is at
// most 0.172 either way, ln m = 2 (f + f^3/3 + f^5/5 + ...).
double logarithm(double x) {
  constexpr uint64_t kMantissa = (uint64_t{1} << 52) - 1;
  constexpr double kSqrt2 = 0x1.6a09e667f3bcdp+0;
  const auto bits = std::bit_cast<uint64_t>(x);
  auto e = static_cast<double>(static_cast<int64_t>(bits >> 52) - 1023);
  double m = std::bit_cast<double>((bits & kMantissa) | (uint64_t{1023} << 52));
  if (m > kSqrt2) {
    m *= 0.5;
    e += 1;
  }
  const double f = (m - 1) / (m + 1);
  const double square = f * f;
  double sum = 0;
  for (int k = 25; k >= 3; k -= 2) sum = (sum + 1.0 / k) * square;
  return e * kLn2High + (e * kLn2Low + 2 * (f + f * sum));
}

// REQUIRES: x <= 0. With x = n ln 2 + r, computes Taylor's polynomial of r, at most 0.35 either
// way.
double exponential(double x) {
  constexpr double kInverseLn2 = 0x1.71547652b82fep+0;
  if (!(x > kLeastExponent)) return 0;
  const double n = std::floor(x * kInverseLn2 + 0.5);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double sum = 1;
  for (int k = 14; k >= 1; --k) sum = 1 + sum * r / k;
  const auto power = static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52;
  return sum * std::bit_cast<double>(power);
}

// A point of the disc: its angle gives the sine, its radius the rest.
double polar(uint64_t key, double alpha) {
  const double power = 2 / (2 * alpha - 1);
  for (uint64_t i = 0;; i += 2) {
    const double u = 2 * unit(key, i) - 1;
    const double v = 2 * unit(key, i + 1) - 1;
    const double s = u * u + v * v;
    if (s == 0 || s >= 1) continue;
    return 0.5 + u * v / s * std::sqrt(1 - exponential(power * logarithm(s)));
  }
}

// Draws x = U^(1/alpha) and y = V^(1/alpha) until their sum is not above 1, and returns
// x / (x + y). With small parameters both may be too small for a number.
double in_logarithms(uint64_t key, double alpha) {
  for (uint64_t i = 0;; i += 2) {
    const double x = logarithm(1 - unit(key, i)) / alpha;
    const double y = logarithm(1 - unit(key, i + 1)) / alpha;
    if (exponential(x) + exponential(y) > 1) continue;
    const double smaller = exponential(x > y ? y - x : x - y);  // relative to the larger one
    return (x > y ? 1 : smaller) / (1 + smaller);
  }
}

}  // namespace

double draw_beta(uint64_t key, double alpha) {
  return alpha >= 0.5 ? polar(key, alpha) : in_logarithms(key, alpha);
}

}  // namespace lockstep::data
