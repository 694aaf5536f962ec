// JSON as the commands print it.
// Thread-safety: a free function without state.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

// Names of files may be any bytes; what is no UTF-8 is shown as such.
inline std::string json_text(const nlohmann::json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep
