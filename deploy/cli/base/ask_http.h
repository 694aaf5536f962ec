// Asks a run's coordinator over HTTP.
//
// Thread-safety: a free function without state.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "comm/http/http_call.h"

namespace lockstep {

// Asks at the address in coordinator.json. Beyond loopback it uses TLS with the run's certificates
// and its http_token. kNoInput without that file; other errors as http_get().
Result<http::HttpAnswer> ask_http(const std::string& run_dir, const std::string& path,
                                  int64_t timeout_ms);

}  // namespace lockstep
