#include "deploy/agent/node_notices.h"

#include <utility>

#include "deploy/agent/agent_messages.h"

namespace lockstep {

NodeNotices::NodeNotices(rpc::AsioLoop& loop, const AgentOptions& options, Logger& logger,
                         std::function<void(const wire::Envelope&)> send,
                         std::function<void()> leave)
    : loop_(loop),
      options_(options),
      logger_(logger),
      send_(std::move(send)),
      leave_(std::move(leave)) {}

void NodeNotices::watch() {
  watch_ = std::make_unique<CloudWatch>(
      options_.metadata,
      [this](const CloudNotice& notice) { loop_.post([this, notice] { on_notice(notice); }); },
      [this](const std::string& why) { logger_.info("no_metadata_service", why); });
}

void NodeNotices::repeat() {
  if (told_) send_(*told_);
}

void NodeNotices::end() {
  watch_.reset();
}

// A forecast is told alone, unless the job wants the node to leave for it, too.
void NodeNotices::on_notice(const CloudNotice& notice) {
  const bool leaves = notice.is_certain || options_.job.cluster().on_rebalance_notice() == "drain";
  const std::string text = notice_text(options_.node, notice, leaves);
  logger_.warn("node_notice", text);
  if (options_.tell) options_.tell(text);
  told_ = notice_message(notice, text);
  send_(*told_);
  if (leaves) leave_();
}

}  // namespace lockstep
