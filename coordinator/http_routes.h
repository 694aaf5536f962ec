// What the coordinator answers over HTTP: /healthz /readyz /metrics /sd /api/v1/status and /.
//
// Thread-safety: the handlers run on the loop's thread. REQUIRES: `server` outlives them.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "comm/rpc/http_server.h"
#include "coordinator/server.h"

namespace lockstep::coordinator {

// `own_address`: host:port of this HTTP server, known only once it listens.
std::map<std::string, http::Handler> http_routes(Server& server,
                                                 std::function<std::string()> own_address);

}  // namespace lockstep::coordinator
