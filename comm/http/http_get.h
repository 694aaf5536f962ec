// One blocking HTTP GET, for command line tools that ask a coordinator. On this machine it goes in
// the clear, to other machines over TLS and with a token.
//
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

// kUnavailable if no server answers, kTimeout after `timeout_ms` in all. kRefused for an answer
// that is no HTTP or larger than `limit_bytes`, or if the certificate is not valid. kConfig for an
// address beyond this machine without TLS. Any status code is a result, not an error.
Result<GetResult> http_get(const rpc::Address& address, const std::string& path, int64_t timeout_ms,
                           const Access& access = {},
                           size_t limit_bytes = limits::kHttpAnswerBytes);

}  // namespace lockstep::http
