// JSON as the commands print it.
//
// Thread-safety: a free function without state.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

// ASCII, so that no name in it steers a terminal. Replaces bytes that are not UTF-8, which names of
// files may hold.
inline std::string json_text(const nlohmann::json& json) {
  return json.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep
