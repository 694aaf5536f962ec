// Tells what the tables of the code say about the values of a key (KeyOptions::values_of), and
// about keys that only some models have (KeyOptions::by_model).
//
// Thread-safety: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/run/job/job_options.pb.h"

namespace lockstep {

struct KeyValue {
  std::string_view name;
  std::string_view about = {};                       // empty: the help says nothing of it
  std::span<const std::string_view> elsewhere = {};  // other programs' words; the rest may be empty
};

// The rows of a list, in their order; none for NOT_LISTED.
std::vector<KeyValue> key_values(wire::KeyOptions::ValuesOf list);

// The models that have the key of model, each with what the key does there.
std::vector<KeyValue> models_with(std::string_view key);

// "a, b: what. c: what else": a sentence for each `about`, without a full stop at the end.
std::string sentences_of(std::span<const KeyValue> values);

}  // namespace lockstep
