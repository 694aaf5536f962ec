#include "coordinator/serve/http_routes.h"

#include "comm/base/limits.h"
#include "coordinator/page/page.h"
#include "coordinator/report/watch_json.h"

namespace lockstep::coordinator {
namespace {

constexpr char kJson[] = "application/json";

void add_api(RunServer& server, const Timeline& timeline,
             std::map<std::string, http::Handler>* routes) {
  (*routes)["/api/v1/status"] = [&server](const http::Request& request) {
    const size_t members =
        query_number(request.query, "members", limits::kMembers, limits::kMembers);
    return http::Response{.content_type = kJson, .body = server.status(members)};
  };
  (*routes)["/api/v1/history"] = [&server](const http::Request& request) {
    const size_t points = query_number(request.query, "points", kHistoryPoints, Curves::kBins);
    return http::Response{.content_type = kJson, .body = server.history(points)};
  };
  (*routes)["/api/v1/events"] = [&timeline](const http::Request& request) {
    const size_t limit = query_number(request.query, "limit", kListedEvents, Timeline::kEvents);
    return http::Response{.content_type = kJson, .body = events_json(timeline, limit)};
  };
  (*routes)["/api/v1/job"] = [&server](const http::Request&) {
    return http::Response{.content_type = kJson, .body = server.job()};
  };
}

}  // namespace

std::map<std::string, http::Handler> http_routes(RunServer& server, const Timeline& timeline,
                                                 std::function<std::string()> own_address) {
  std::map<std::string, http::Handler> routes;
  for (const page::File& file : page::files()) routes[std::string(file.path)] = page::serve(file);
  add_api(server, timeline, &routes);
  routes["/healthz"] = [](const http::Request&) { return http::Response{.body = "ok\n"}; };
  routes["/readyz"] = [&server](const http::Request&) {
    if (server.is_ready()) return http::Response{.body = "training\n"};
    return http::Response{.status = 503,
                          .body = std::string(run_state_name(server.state().run)) + "\n"};
  };
  routes["/metrics"] = [&server](const http::Request&) {
    return http::Response{.content_type = kMetricsContentType, .body = server.metrics()};
  };
  routes["/sd"] = [&server, own_address = std::move(own_address)](const http::Request&) {
    return http::Response{.content_type = kJson, .body = server.discovery(own_address())};
  };
  return routes;
}

}  // namespace lockstep::coordinator
