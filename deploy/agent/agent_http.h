// The agent's own /metrics: its workers, this machine's GPUs and cores, its certificate.
//
// Thread-safety: the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/base/log.h"
#include "comm/http/http_server.h"
#include "comm/rpc/asio_transport.h"
#include "deploy/agent/agent_options.h"
#include "metrics/exporters/agent_metrics.h"

namespace lockstep {

class AgentHttp {
 public:
  // `refresh` brings the metrics up to date before each scrape. All outlive this.
  AgentHttp(rpc::AsioLoop& loop, const AgentOptions& options, Logger& logger,
            std::function<void(AgentMetrics&)> refresh);

  // Serves the metrics of `run`, which the series name. Does nothing if it serves already.
  void open(const std::string& run);

  std::string address() const;  // empty: nothing is served

 private:
  std::string expose();

  rpc::AsioLoop& loop_;
  const AgentOptions& options_;
  Logger& logger_;
  const std::function<void(AgentMetrics&)> refresh_;
  std::unique_ptr<AgentMetrics> metrics_;
  std::unique_ptr<http::HttpServer> server_;
  bool told_of_nvml_ = false;
};

}  // namespace lockstep
