// What parsers of data files say: of what they were given, and of which file.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <utility>

#include "comm/base/status.h"

namespace lockstep::data {

// `what` goes on after the file's name: "is truncated: ...".
inline Status bad(std::string what) {
  return {Code::kBadData, std::move(what)};
}

inline Status about(const std::string& path, const Status& status) {
  return {status.code(), path + " " + status.message()};
}

}  // namespace lockstep::data
