#include "coordinator/http_routes.h"

namespace lockstep::coordinator {
namespace {

constexpr char kJson[] = "application/json";

std::string index_page(const State& state) {
  return "lockstep run " + state.run_id + ": " + run_state_name(state.run) + ", generation " +
         std::to_string(state.generation) + ", " + std::to_string(state.completed) +
         " steps\n\n/api/v1/status\n/metrics\n/sd\n/healthz\n/readyz\n";
}

}  // namespace

std::map<std::string, http::Handler> http_routes(Server& server,
                                                 std::function<std::string()> own_address) {
  std::map<std::string, http::Handler> routes;
  routes["/"] = [&server](const http::Request&) {
    return http::Response{.body = index_page(server.state())};
  };
  routes["/healthz"] = [](const http::Request&) { return http::Response{.body = "ok\n"}; };
  routes["/readyz"] = [&server](const http::Request&) {
    if (server.is_ready()) return http::Response{.body = "training\n"};
    return http::Response{.status = 503,
                          .body = std::string(run_state_name(server.state().run)) + "\n"};
  };
  routes["/api/v1/status"] = [&server](const http::Request&) {
    return http::Response{.content_type = kJson, .body = server.status()};
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
