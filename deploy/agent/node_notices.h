// What an agent does with its cloud's notices (cloud_watch.h): it tells them to people and to the
// coordinator, again after each reconnection, and says when the node is to leave.
//
// Thread-safety: the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/base/log.h"
#include "comm/rpc/asio_transport.h"
#include "comm/wire/control.pb.h"
#include "deploy/agent/agent_options.h"
#include "deploy/agent/cloud/cloud_watch.h"

namespace lockstep {

class NodeNotices {
 public:
  // `send` gives a message to the coordinator, if it is there. `leave`: the node has to leave;
  // called for each such notice. All outlive this.
  NodeNotices(rpc::AsioLoop& loop, const AgentOptions& options, Logger& logger,
              std::function<void(const wire::Envelope&)> send, std::function<void()> leave);

  void watch();   // from now on
  void repeat();  // what still stands, to a coordinator that is new
  void end();     // blocks for a second at most

 private:
  void on_notice(const CloudNotice& notice);

  rpc::AsioLoop& loop_;
  const AgentOptions& options_;
  Logger& logger_;
  const std::function<void(const wire::Envelope&)> send_;
  const std::function<void()> leave_;
  std::optional<wire::Envelope> told_;
  std::unique_ptr<CloudWatch> watch_;
};

}  // namespace lockstep
