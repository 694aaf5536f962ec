// Draws from the Beta distribution with two equal parameters, for the shares of mixing.
//
// For a parameter of at least one half it uses Ulrich's polar method, below one half Jöhnk's method
// in logarithms; both are exact. Logarithm and exponential are our own. They use only +, -, *, /
// and the square root, which IEEE fixes. Math libraries differ in the last bits, and a draw must be
// the same on every machine.
//
// Sources: G. Ulrich, Computer generation of distributions on the m-sphere, Applied Statistics 33,
// 1984; M. D. Jöhnk, Erzeugung von betaverteilten und gammaverteilten Zufallszahlen, Metrika 8,
// 1964.
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>

namespace lockstep::data {

// A number in [0, 1] from the stream of this key. REQUIRES: 1e-3 <= alpha <= 1e3.
double draw_beta(uint64_t key, double alpha);

}  // namespace lockstep::data
