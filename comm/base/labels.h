// Labels that are no class.
//
// Thread-safety: a constant.
#pragma once

#include <cstdint>

namespace lockstep {

// Nothing is to be predicted there: no loss and no gradient. PyTorch's number.
inline constexpr int64_t kIgnoredLabel = -100;

}  // namespace lockstep
