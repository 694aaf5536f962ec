// Compares what decides the bits of two machines: the "key=value" lines of their fingerprints.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// The first line that the two have with different values, as "torch=2.11 here, torch=2.10 then";
// empty if there is none. A key that only one of them has says nothing: an earlier version did not
// write it.
std::string numerics_difference(const std::vector<std::string>& here,
                                const std::vector<std::string>& then);

}  // namespace lockstep
