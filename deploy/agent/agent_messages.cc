#include "deploy/agent/agent_messages.h"

#include <algorithm>
#include <utility>

#include "comm/base/limits.h"
#include "comm/wire/in_hand.h"

namespace lockstep {

wire::Envelope notice_message(const GpuNews& news) {
  wire::Envelope envelope;
  auto& notice = *envelope.mutable_node_notice();
  notice.set_source("gpu");
  notice.set_reason(news.now.reason.substr(0, limits::kNoticeBytes));
  notice.set_is_certain(true);
  notice.add_local_ranks(news.place.local_rank);
  notice.set_undo(news.now.fitness != Fitness::kLeave);
  return envelope;
}

wire::Envelope notice_message(const CloudNotice& cloud, const std::string& text) {
  wire::Envelope envelope;
  auto& notice = *envelope.mutable_node_notice();
  notice.set_source("cloud");
  notice.set_reason(text.substr(0, limits::kNoticeBytes));
  if (cloud.left_s) notice.set_deadline_ms(std::max<int64_t>(1, *cloud.left_s * 1'000));
  notice.set_is_certain(cloud.is_certain);
  return envelope;
}

std::string notice_text(const std::string& node, const CloudNotice& notice, bool leaves) {
  std::string text = node + (notice.is_certain ? " is to be taken away" : " may be taken away");
  if (notice.left_s) {
    const std::string seconds = std::to_string(*notice.left_s % 60);
    text += " in " + std::to_string(*notice.left_s / 60) + ":" +
            (seconds.size() < 2 ? "0" + seconds : seconds);
  }
  return text + " (" + notice.what + "); its workers " + (leaves ? "leave" : "stay");
}

wire::Envelope exit_message(const WorkerEnd& worker) {
  wire::Envelope envelope;
  auto& exit = *envelope.mutable_worker_exit();
  exit.set_pid(static_cast<uint32_t>(worker.pid));
  exit.set_process(worker.process);
  exit.set_exit_code(worker.end.exit_code);
  exit.set_signal(worker.end.signal);
  exit.set_last_words(worker.last_words);
  exit.set_will_restart(worker.decision.action == ExitAction::kRestart);
  exit.set_local_rank(worker.local_rank);
  *exit.mutable_in_hand() = to_wire(worker.in_hand);
  return envelope;
}

void ToldExits::add(wire::Envelope exit) {
  exits_.push_back(std::move(exit));
  if (exits_.size() > limits::kExitsTold) exits_.pop_front();
}

void ToldExits::repeat(const std::set<uint32_t>& living,
                       const std::function<void(const wire::Envelope&)>& tell) const {
  for (const wire::Envelope& exit : exits_)
    if (living.count(exit.worker_exit().pid()) == 0) tell(exit);
}

std::set<uint32_t> list_living(const std::vector<WorkerSlots::Living>& workers,
                               wire::AgentHello* hello) {
  std::set<uint32_t> pids;
  for (const WorkerSlots::Living& worker : workers) {
    hello->add_living(static_cast<uint32_t>(worker.pid));
    hello->add_living_process(worker.process);
    pids.insert(static_cast<uint32_t>(worker.pid));
  }
  return pids;
}

}  // namespace lockstep
