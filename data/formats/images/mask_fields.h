// Fields of masks, in the records of images.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "data/dataset/fields.h"

namespace lockstep::data {

inline FieldSpec mask_field(const std::string& name, FieldRole role) {
  return {.name = name, .role = role, .type = FieldType::kU8, .follows_image = true};
}

inline Status masks_have_no_weights(const std::string& weight) {
  return {Code::kUsage, "data.weight is " + weight +
                            ", but images with masks have no weights; leave data.weight out"};
}

}  // namespace lockstep::data
