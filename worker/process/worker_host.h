// Connects the session (loop's thread) with the training (a thread of its own): closes the gate and
// the collective on a prepare, hands over starts, and remembers how the run ended.
//
// The session connects while the engine is built, and registers after attach().
//
// Thread-safety: everything on the loop's thread. The training thread calls back through the loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/base/log.h"
#include "comm/collectives/host/host_collective.h"
#include "comm/rpc/transport.h"
#include "worker/engine/engine.h"
#include "worker/process/hang_notes.h"
#include "worker/runner/runner.h"
#include "worker/session/apply_gate.h"
#include "worker/session/mailbox.h"
#include "worker/session/session.h"

namespace lockstep {

class WorkerHost final : public SessionHost {
 public:
  struct Parts {
    rpc::Loop& loop;
    ApplyGate& gate;
    Mailbox& mailbox;
    HostContext& context;
    Logger& logger;
    WorkInHand& in_hand;
    std::string stacks_path;  // where the stacks of a worker that hangs are saved
    std::function<void(int exit_code)> on_end;
    int stack_memory = -1;            // of a script's worker (python_stacks.h)
    HangNotes* hang_notes = nullptr;  // may be null
  };

  WorkerHost(Parts parts, wire::JobSpec job) : parts_(std::move(parts)), job_(std::move(job)) {}

  // Both outlive the host.
  void attach(Engine& engine, Runner& runner);
  void set_run_id(std::string run_id) { run_id_ = std::move(run_id); }
  const std::string& run_id() const { return run_id_; }

  // The training has failed: from now on `end` is called when the coordinator takes this process
  // for a new worker, which could only fail again, in the place of one that can.
  void has_failed(std::function<void()> end) { end_if_new_ = std::move(end); }

  // After a signal: stops at the next boundary that all members agree on.
  void request_stop(const std::string& why);

  Status on_registered(const wire::Registered& registered) override;
  void on_close(Generation through, Closed closed) override;
  void on_start(Generation generation, const wire::Start& start) override;
  void on_planned(Generation generation, const wire::Start& next) override;
  void on_new_identity(Generation through) override;
  void on_stop(const std::string& reason) override { request_stop(reason); }
  void on_checkpoint_ack(const wire::CheckpointAck& ack) override;
  void on_recorded() override { parts_.mailbox.recorded(); }
  void on_hang() override;
  void on_end(const Status& why, int exit_code) override;
  Heartbeat heartbeat() const override;
  Standing standing() const override { return parts_.gate.standing(); }
  InHand in_hand() const override { return parts_.in_hand.get(); }

 private:
  Progress progress() const { return engine_ == nullptr ? Progress() : engine_->progress(); }
  void look_for_hang();

  const Parts parts_;
  wire::JobSpec job_;  // all but the global batch never changes, and that only from 0
  std::string run_id_;
  MemberId member_ = 0;
  Engine* engine_ = nullptr;
  Runner* runner_ = nullptr;
  bool stop_requested_ = false;
  std::function<void()> end_if_new_;  // empty: it has not failed
};

}  // namespace lockstep
