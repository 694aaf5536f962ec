// The header Content-Range: which bytes of how many an answer has (RFC 9110, 14.4).
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "comm/http/http_client.h"

namespace lockstep::http {

struct ContentRange {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t total = 0;
};

// Of "bytes FIRST-LAST/TOTAL"; nothing for any other form.
std::optional<ContentRange> parse_content_range(std::string_view text);

// How many bytes the whole object has, as an answer to a request for a part of it says.
std::optional<uint64_t> whole_bytes(const HttpAnswer& answer);

}  // namespace lockstep::http
