// The coordinator's HTTP routes: /healthz, /readyz, /metrics, /sd, the status page at / with its
// files, and its data: /api/v1/status, /api/v1/history?points=N, /api/v1/events?limit=N.
//
// Thread-safety: the handlers run on the loop's thread. REQUIRES: `server` and `timeline` outlive
// them.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "comm/http/http_server.h"
#include "coordinator/report/timeline.h"
#include "coordinator/serve/run_server.h"

namespace lockstep::coordinator {

// `own_address`: host:port of this HTTP server, known only once it listens.
std::map<std::string, http::Handler> http_routes(RunServer& server, const Timeline& timeline,
                                                 std::function<std::string()> own_address);

}  // namespace lockstep::coordinator
