// The HTTP server of a process that has nothing but /metrics to show.
// Thread-safety: that of HttpServer.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/base/log.h"
#include "comm/http/http_server.h"

namespace lockstep {

// `expose` gives the exposition, of type kMetricsContentType, and outlives the server. Null when it
// cannot be served, or `options` is an error: what the process is there for goes on all the same,
// and the log says that there is "no /metrics on this `who`".
std::unique_ptr<http::HttpServer> serve_metrics(rpc::AsioLoop& loop,
                                                Result<http::HttpServer::Options> options,
                                                std::function<std::string()> expose,
                                                const std::string& who, Logger& logger);

}  // namespace lockstep
