// The HTTP server of a process that serves nothing but /metrics.
//
// Thread-safety: as HttpServer.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/base/log.h"
#include "comm/http/http_server.h"

namespace lockstep {

// `expose` returns the exposition, of type kMetricsContentType, and outlives the server. Null if
// the server cannot start, or if `options` is an error: the process goes on with its work, and the
// log says that there is "no /metrics on this `who`".
std::unique_ptr<http::HttpServer> serve_metrics(rpc::AsioLoop& loop,
                                                Result<http::HttpServer::Options> options,
                                                std::function<std::string()> expose,
                                                const std::string& who, Logger& logger);

}  // namespace lockstep
