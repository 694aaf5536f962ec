// The messages that tell the coordinator about an agent's workers, GPUs and machine.
//
// Thread-safety: pure functions; ToldExits belongs to one thread.
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "comm/wire/control.pb.h"
#include "deploy/agent/cloud/cloud_notice.h"
#include "deploy/agent/gpu_watch.h"
#include "deploy/agent/worker_slots.h"

namespace lockstep {

wire::Envelope exit_message(const WorkerEnd& worker);

// The newest exits that were told, for a coordinator that comes back.
class ToldExits {
 public:
  void add(wire::Envelope exit);
  // Tells the exits again, oldest first, except exits with the pid of a worker that lives now.
  void repeat(const std::set<uint32_t>& living,
              const std::function<void(const wire::Envelope&)>& tell) const;

 private:
  std::deque<wire::Envelope> exits_;
};

// Lists the workers that live. Returns their pids: the kernel may have given a dead one's to
// another.
std::set<uint32_t> list_living(const std::vector<WorkerSlots::Living>& workers,
                               wire::AgentHello* hello);

// The place's GPU is unfit, or (undo) fit again.
wire::Envelope notice_message(const GpuNews& news);

// The whole node is to be taken away, or may be. `text`: notice_text().
wire::Envelope notice_message(const CloudNotice& notice, const std::string& text);

// "node-b is to be taken away in 1:54 (AWS spot interruption: terminate); its workers leave".
std::string notice_text(const std::string& node, const CloudNotice& notice, bool leaves);

}  // namespace lockstep
