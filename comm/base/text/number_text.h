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

}  // namespace lockstep
