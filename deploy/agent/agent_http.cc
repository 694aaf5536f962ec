#include "deploy/agent/agent_http.h"

#include <utility>

#include "comm/base/build_info.h"
#include "comm/http/http_options.h"
#include "comm/net/address.h"
#include "metrics/serve/serve_metrics.h"

namespace lockstep {

AgentHttp::AgentHttp(rpc::AsioLoop& loop, const AgentOptions& options, Logger& logger,
                     std::function<void(AgentMetrics&)> refresh)
    : loop_(loop), options_(options), logger_(logger), refresh_(std::move(refresh)) {}

void AgentHttp::open(const std::string& run) {
  if (metrics_ != nullptr) return;
  metrics_ = std::make_unique<AgentMetrics>(
      AgentTarget{run, options_.node, options_.run_dir, options_.nvml_library}, build_info());
  server_ = serve_metrics(
      loop_, http::http_options(options_.job, options_.run_dir, options_.tls, logger_),
      [this] { return expose(); }, "agent", logger_);
}

std::string AgentHttp::address() const {
  return server_ ? rpc::to_string(server_->address()) : "";
}

std::string AgentHttp::expose() {
  refresh_(*metrics_);
  if (options_.tls) metrics_->tls().expires_in(options_.tls->expiry_seconds());
  std::string text = metrics_->expose_text();
  // Tells once that NVML is here and of no use. A machine without NVML has mostly no GPU.
  const Status status = metrics_->gpus().status();
  if (status.code() == Code::kConfig && !std::exchange(told_of_nvml_, true))
    logger_.warn("no_gpu_metrics", status.message());
  return text;
}

}  // namespace lockstep
