// The features of a tensorflow.train.Example, where they lie in its bytes. Every byte is believed
// to be hostile; nothing is allocated by what they say.
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

// each(feature) in their order, until one is not ok. kBadData, going on after "it", for what is no
// Example.
Status walk_example(std::span<const uint8_t> example,
                    const std::function<Status(const TfFeature&)>& each);

}  // namespace lockstep::data
