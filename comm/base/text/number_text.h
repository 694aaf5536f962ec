// Numbers as people read them.
//
// Thread-safety: free functions without state.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

std::string grouped(uint64_t number);           // 1234567 -> "1,234,567"
std::string fixed(double number, int digits);   // 0.12345, 3 -> "0.123"
std::string percent(double share, int digits);  // 0.9 -> "90.0 %"

// Three digits that matter: 2845.4 -> "2,845", 12.64 -> "12.6", 0.126 -> "0.126", 0.00042 ->
// "0.00042". A slow run's speed is not "0".
std::string rate_text(double rate);

}  // namespace lockstep
