#include "metrics/serve_metrics.h"

#include <map>
#include <utility>

#include "metrics/families.h"

namespace lockstep {

std::unique_ptr<http::HttpServer> serve_metrics(rpc::AsioLoop& loop,
                                                std::function<std::string()> expose,
                                                const std::string& who, Logger& logger) {
  std::map<std::string, http::Handler> handlers;
  handlers["/metrics"] = [expose = std::move(expose)](const http::Request&) {
    return http::Response{200, kMetricsContentType, expose()};
  };
  auto started = http::HttpServer::start(loop, {}, std::move(handlers), logger);
  if (started.is_ok()) return std::move(started).value();
  logger.warn("no_metrics", "no /metrics on this " + who + ": " + started.status().message());
  return nullptr;
}

}  // namespace lockstep
