// Errors of parsers of data files: what is wrong, and in which file.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "comm/base/status.h"

namespace lockstep::data {

// `what` goes on after the file's name: "is truncated: ...".
inline Status bad(std::string what) {
  return {Code::kBadData, std::move(what)};
}

inline std::string place_text(const std::string& path, uint64_t offset) {
  return path + " at byte " + std::to_string(offset);
}

inline Status about(const std::string& path, const Status& status) {
  return {status.code(), path + " " + status.message()};
}

}  // namespace lockstep::data
