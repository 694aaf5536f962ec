#include "metrics/serve/serve_metrics.h"

#include <map>
#include <utility>

#include "metrics/base/families.h"

namespace lockstep {

std::unique_ptr<http::HttpServer> serve_metrics(rpc::AsioLoop& loop,
                                                Result<http::HttpServer::Options> options,
                                                std::function<std::string()> expose,
                                                const std::string& who, Logger& logger) {
  const auto none = [&](const Status& why) {
    logger.warn("no_metrics", "no /metrics on this " + who + ": " + why.message());
    return nullptr;
  };
  if (!options.is_ok()) return none(options.status());
  std::map<std::string, http::Handler> handlers;
  handlers["/metrics"] = [expose = std::move(expose)](const http::Request&) {
    return http::Response{200, kMetricsContentType, expose()};
  };
  auto started =
      http::HttpServer::start(loop, std::move(options).value(), std::move(handlers), logger);
  if (!started.is_ok()) return none(started.status());
  return std::move(started).value();
}

}  // namespace lockstep
