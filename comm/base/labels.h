// Label values that are no class.
//
// Thread-safety: a constant.
#pragma once

#include <cstdint>

namespace lockstep {

// No prediction counts here: no loss and no gradient. PyTorch uses the same number.
inline constexpr int64_t kIgnoredLabel = -100;

}  // namespace lockstep
