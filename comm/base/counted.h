// "1 worker", "2 workers": for messages.
//
// Thread-safety: pure.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

inline std::string counted(uint64_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

}  // namespace lockstep
