// What a run's coordinator says over HTTP, wherever it listens.
// Thread-safety: a free function without state.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/status.h"
#include "comm/http/http_get.h"

namespace lockstep {

// From the address that coordinator.json names; beyond loopback over TLS, with the run's
// certificates and its http_token. kNoInput when there is no such file; else as http_get().
Result<http::GetResult> ask_http(const std::string& run_dir, const std::string& path,
                                 int64_t timeout_ms);

}  // namespace lockstep
