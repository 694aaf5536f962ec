#include "comm/collectives/check_generation.h"

#include <string>

namespace lockstep {

Status check_generation(const Tag& tag, Generation own) {
  if (tag.generation == own) return Status::ok();
  return {Code::kInternal, "an operation of generation " + std::to_string(tag.generation) +
                               " on a Collective of generation " + std::to_string(own)};
}

}  // namespace lockstep
