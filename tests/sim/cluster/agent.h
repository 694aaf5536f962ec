// The model of a node's agent (deploy/agent/agent.h). It starts workers, reaps them, tells the
// coordinator, starts them again as the real one decides, and ends after Goodbye. It has no limit
// of restarts.
//
// Thread-safety: one thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "comm/rpc/client.h"
#include "deploy/agent/exit_decision.h"
#include "tests/sim/cluster/worker.h"
#include "tests/sim/world/process.h"

namespace lockstep::sim {

class SimAgent final : public Process {
 public:
  SimAgent(World& world, std::string node, uint32_t workers);
  ~SimAgent() override;

  const std::string& node() const { return node_; }
  std::vector<SimWorker*> living() const;  // by local rank
  bool is_connected() const { return client_ != nullptr && client_->is_ready(); }
  bool finds_unfit(uint32_t local_rank) const {
    const auto place = places_.find(local_rank);
    return place != places_.end() && place->second.is_unfit;
  }
  // Looks which GPUs of its node are unfit (World::unfit_gpus), and tells what changed.
  void look_at_gpus();
  // SIGTERM: the agent starts no worker again, and need not hear how the run ended.
  void terminate();
  // SIGINT after that: kills its workers.
  void kill_workers();

 private:
  void vanish() override;
  // The agent's knowledge of a place, whichever worker has it.
  struct Place {
    SimWorker* worker = nullptr;  // living or not yet reaped
    bool waits = false;           // for a restart
    bool is_unfit = false;        // as was told last
    bool is_held = false;         // empty until its GPU is fit
    uint32_t unfit_pid = 0;       // the last worker that was there while it was unfit
    int64_t started_ms = 0;
    uint32_t quick_deaths = 0;
  };

  // As in deploy/agent/worker_slots.cc: workers that were not wanted before do not count for what
  // is wanted now.
  void set_wanted(uint32_t workers);
  uint32_t occupied() const;
  void start_worker(uint32_t local_rank);
  ExitDecision decide(Place& place, const Ending& ending);
  static bool is_occupied(const Place& place);
  // As deploy/agent/gpu_places.h: tells what the last look found and the agent has not told yet. A
  // place that the agent does not have any more counts as fit.
  void tell_news();
  void tell_gpu(uint32_t local_rank);
  bool leaves_for_gpu(const Place& place, const Process& ended) const;
  void on_worker_ended(uint32_t local_rank, const Process& ended);
  void forget_restarts();
  void hello();
  void on_message(const wire::Envelope& envelope);
  void kill_worker(uint32_t pid);
  void on_goodbye();
  void end_if_alone();

  const std::string node_;
  uint32_t wanted_ = 0;
  uint32_t surplus_deaths_ = 0;  // of workers that were not wanted any more, since wanted_ changed
  std::unique_ptr<rpc::MemoryTransport> transport_;
  std::unique_ptr<rpc::RpcClient> client_;
  // Dead ones stay until the agent ends, because their code may still be on the stack.
  std::vector<std::unique_ptr<SimWorker>> all_;
  std::map<uint32_t, Place> places_;  // by local rank
  std::set<uint32_t> seen_unfit_;     // by the last look, by local rank
  std::deque<wire::Envelope> exits_;
  bool has_goodbye_ = false;
  bool is_stopping_ = false;
};

}  // namespace lockstep::sim
