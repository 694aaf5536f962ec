// Draws of the Beta distribution with both parameters the same, for shares of what is mixed.
//
// From half a parameter upwards by Ulrich's polar method, below by Jöhnk's, in logarithms; both are
// exact. Logarithm and exponential are of our own, +, -, *, / and the square root alone, which IEEE
// fixes: libraries differ in the last bits of theirs, and a draw must be the same on every machine.
//
// Sources: G. Ulrich, Computer generation of distributions on the m-sphere, Applied Statistics 33,
// 1984; M. D. Jöhnk, Erzeugung von betaverteilten und gammaverteilten Zufallszahlen, Metrika 8,
// 1964.
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>

namespace lockstep::data {

// In [0, 1], from the stream of this key. REQUIRES: 1e-3 <= alpha <= 1e3.
double draw_beta(uint64_t key, double alpha);

}  // namespace lockstep::data
