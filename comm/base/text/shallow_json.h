// JSON of outside text as a tree that is no deeper than it may be: a walk over a deep one would
// leave the stack.
//
// Thread-safety: a pure function.
#pragma once

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

}  // namespace lockstep
