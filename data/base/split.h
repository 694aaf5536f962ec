// Thread-safety: a value.
#pragma once

namespace lockstep::data {

enum class Split { kTrain, kEval };

}  // namespace lockstep::data
