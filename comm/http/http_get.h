// One blocking HTTP GET, for command line tools that ask a coordinator: in the clear on this
// machine, over TLS and with a token on another.
// Thread-safety: a free function without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "comm/http/get_result.h"
#include "comm/net/address.h"
#include "comm/tls/tls_context.h"

namespace lockstep::http {

struct Access {
  std::shared_ptr<const rpc::TlsContext> tls = {};  // null: in the clear
  std::string token = {};
};

// kUnavailable when nobody answers, kTimeout after `timeout_ms` in all, kRefused for an answer that
// is no HTTP or larger than `limit_bytes`, or whose certificate does not hold; kConfig for an
// address beyond this machine without TLS. Any status code is a result, not an error.
Result<GetResult> http_get(const rpc::Address& address, const std::string& path, int64_t timeout_ms,
                           const Access& access = {},
                           size_t limit_bytes = limits::kHttpAnswerBytes);

}  // namespace lockstep::http
