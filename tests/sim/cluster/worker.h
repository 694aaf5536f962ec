// A simulated worker process: the real Session and gate around the model of the training thread.
//
// WorkerHost (worker/process/worker_host.h) connects the real session and Runner. Here the same
// rules connect the session and the Trainer.
//
// Thread-safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "tests/sim/cluster/trainer.h"
#include "tests/sim/world/process.h"
#include "tests/sim/world/world.h"
#include "worker/session/session.h"

namespace lockstep::sim {

inline constexpr char kToken[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

class SimWorker final : public Process, public SessionHost {
 public:
  SimWorker(World& world, std::string node, uint32_t local_rank);
  ~SimWorker() override;

  const std::string& node() const { return node_; }
  uint32_t local_rank() const { return local_rank_; }
  std::string place() const { return node_ + "/w" + std::to_string(local_rank_); }
  MemberId member() const { return session_ ? session_->member() : 0; }
  const Trainer* trainer() const { return trainer_.get(); }

  // Its training thread hangs for this long. The session still answers.
  void stall(int64_t ms) {
    if (trainer_) trainer_->stall(ms);
  }
  void damage(Damage what) {
    if (trainer_) trainer_->damage(what);
  }
  // SIGTERM: the worker asks the next generation to leave it out.
  void terminate();

  // ---- SessionHost
  Status on_registered(const wire::Registered& registered) override;
  void on_close(Generation through, Closed closed) override;
  void on_start(Generation generation, const wire::Start& start) override;
  void on_planned(Generation generation, const wire::Start& next) override;
  void on_new_identity(Generation through) override;
  void on_stop(const std::string& reason) override;
  void on_hang() override {}
  void on_checkpoint_ack(const wire::CheckpointAck& ack) override;
  void on_recorded() override;
  void on_end(const Status& why, int exit_code) override;
  Heartbeat heartbeat() const override;
  Standing standing() const override { return gate_.standing(); }
  // Also works for a process that has ended.
  InHand in_hand() const override { return in_hand_; }

 private:
  void vanish() override;
  void begin();
  wire::Register hello() const;
  void answer(Generation through, const Closed& closed, const Standing& standing);

  const std::string node_;
  const uint32_t local_rank_;
  std::unique_ptr<Logger> logger_;
  std::unique_ptr<rpc::MemoryTransport> transport_;
  ApplyGate gate_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Trainer> trainer_;
  MemberId member_ = 0;
  InHand in_hand_{pid(), {}};
};

// Puts log lines into the trace.
std::unique_ptr<Logger> trace_logger(World& world, std::string who);

}  // namespace lockstep::sim
