// One blocking HTTP GET, for command line tools that ask a coordinator on this machine.
// Thread-safety: a free function without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "comm/rpc/address.h"

namespace lockstep::http {

struct GetResult {
  int status = 0;
  std::string body;
};

// kUnavailable when nobody answers, kTimeout after `timeout_ms` in all, kRefused for an answer that
// is no HTTP or larger than `limit_bytes`. Any status code is a result, not an error.
Result<GetResult> http_get(const rpc::Address& address, const std::string& path, int64_t timeout_ms,
                           size_t limit_bytes = limits::kHttpAnswerBytes);

}  // namespace lockstep::http
