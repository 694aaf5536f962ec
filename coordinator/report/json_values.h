// JSON values of the coordinator's reports. Only sources include this, because nlohmann/json is
// large.
//
// Thread-safety: pure functions.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace lockstep::coordinator {

// JSON has no NaN and no infinity: they become null.
inline nlohmann::json json_number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

// Names come from outside; bytes that are not UTF-8 are replaced.
inline std::string json_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::coordinator
