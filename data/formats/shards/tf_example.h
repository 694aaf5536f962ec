// Finds where the features of a tensorflow.train.Example lie in its bytes. The parser treats every
// byte as hostile, and never allocates by what the bytes say.
//
//   Example { 1 features }   Features { repeated 1 entry { 1 name, 2 feature } }
//   Feature { one of: 1 bytes_list, 2 float_list, 3 int64_list }, each { repeated 1 value }
//
// Source: tensorflow/core/example/{example,feature}.proto; wire format:
// https://protobuf.dev/programming-guides/encoding.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "comm/base/status.h"

namespace lockstep::data {

struct TfFeature {
  std::string_view name;
  uint64_t texts = 0;             // how many values are bytes
  std::span<const uint8_t> text;  // the first of them, within the example
  uint64_t numbers = 0;           // how many values are whole numbers
  int64_t number = 0;             // the first of them
};

// Calls each(feature) in their order, until a call is not ok. kBadData if the bytes are no Example;
// the message goes on after "it".
Status walk_example(std::span<const uint8_t> example,
                    const std::function<Status(const TfFeature&)>& each);

}  // namespace lockstep::data
