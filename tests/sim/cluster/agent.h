// The model of a node's agent (deploy/agent/agent.h). It starts workers, reaps them, tells the
// coordinator, starts them again, and ends after Goodbye.
//
// Thread-safety: one thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/rpc/client.h"
#include "tests/sim/cluster/worker.h"
#include "tests/sim/world/process.h"

namespace lockstep::sim {

class SimAgent final : public Process {
 public:
  SimAgent(World& world, std::string node, uint32_t workers);
  ~SimAgent() override;

  const std::string& node() const { return node_; }
  std::vector<SimWorker*> living() const;  // by local rank
  // SIGTERM: the agent starts no worker again, and need not hear how the run ended.
  void terminate();
  // SIGINT after that: kills its workers.
  void kill_workers();

 private:
  void vanish() override;
  void start_worker(uint32_t local_rank);
  void on_worker_ended(uint32_t local_rank, const Process& ended);
  void hello();
  void on_message(const wire::Envelope& envelope);
  void kill_worker(uint32_t pid);
  void on_goodbye();
  void end_if_alone();

  const std::string node_;
  uint32_t wanted_;
  std::unique_ptr<rpc::MemoryTransport> transport_;
  std::unique_ptr<rpc::RpcClient> client_;
  // Dead ones stay until the agent ends, because their code may still be on the stack.
  std::vector<std::unique_ptr<SimWorker>> all_;
  std::map<uint32_t, SimWorker*> workers_;  // by local rank, living or not yet reaped
  std::map<uint32_t, int64_t> started_ms_;
  std::deque<wire::Envelope> exits_;
  bool has_goodbye_ = false;
  bool is_stopping_ = false;
};

}  // namespace lockstep::sim
