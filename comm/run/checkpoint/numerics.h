// Compares what decides the bits of two machines: the "key=value" lines of their fingerprints.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// Weight decay leaves parameters without a gradient alone, and the job has such parameters. Earlier
// versions decayed them: "decay=all".
inline constexpr char kDecayWithGradient[] = "decay=with-gradient";

// The first line that the two have with different values, as "torch=2.11 here, torch=2.10 then";
// empty if there is none, or if one side has no lines. A key that only one of them has says
// nothing, because an earlier version did not write it, unless numerics.cc knows what its absence
// means: a key of Lockstep's own arithmetic.
std::string numerics_difference(const std::vector<std::string>& here,
                                const std::vector<std::string>& then);

}  // namespace lockstep
