// JSON of outside text as a tree that is no deeper than it may be: a walk over a deep one would
// leave the stack. And a number in it, which may be of another kind, or not there.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

namespace lockstep {

// The tree; discarded (is_discarded()) if the text is no JSON or nests deeper than `most_depth`.
inline nlohmann::json parse_shallow_json(std::string_view text, int most_depth) {
  bool is_too_deep = false;
  const auto watch = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    is_too_deep = is_too_deep || depth > most_depth;
    return !is_too_deep;
  };
  nlohmann::json root = nlohmann::json::parse(text, watch, /*allow_exceptions=*/false);
  if (is_too_deep) return nlohmann::json(nlohmann::json::value_t::discarded);
  return root;
}

// 0 if `object` has no such key, or no whole number of at least 0 there. REQUIRES: an object.
template <typename Json>
uint64_t count_in(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_unsigned() ? it->template get<uint64_t>() : 0;
}

}  // namespace lockstep
