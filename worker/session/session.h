// One worker's side of the control protocol (coordinator/PROTOCOL.md). It is an event-driven state
// machine over rpc::Transport. It has no thread and no clock of its own, so the simulator runs it
// unchanged.
//
// STATES of the membership. The connection comes and goes independently of them.
//
//   kJoining ─Registered▶ kMember ─Prepare(g)▶ kClosing ─gate closed▶ kPromised ─Start(g)▶ kStarted
//
//   kPromised, kStarted, kLeaving ── Prepare(g' > g) ──▶ kClosing
//   kMember, kPromised, kStarted ─── switched(g') ─────▶ kStarted
//   kStarted ── leave() ──▶ kLeaving ── Goodbye ──▶ kEnded
//   any ── Registered with another id ──▶ kMember
//   any ── Goodbye, Evict, refused ──▶ kEnded
//
//   A planned change is no state. The session remembers it along with the state until the training
//   thread says switched(), or a Prepare makes it void.
//
// MESSAGES                    sent when                                    again after a reconnect
//   Register                  connected and hello() is known               always, first
//   Promise(g)                the host has closed everything older than g  when Prepare(g) is
//   SwitchReport(g)           switched(), after the records before it      no: Register says it
//   EndReport(g)              report_end(), before reports of that step    no: Register says it
//   DrainRequest              drain()                                      until the end
//   PeerSuspect(g)            suspect()                                    while g is the newest
//   StepRecords               a batch is full, or kRecordBatchMs old, or   until RecordsAck
//                             report_eval()
//   CheckpointReport          report_checkpoint()                          until CheckpointAck
//   CheckReport               report_check()                               until the next one
//   Leave                     leave(), and every record is acknowledged    until Goodbye
//                             (a failure does not wait for that)
//   Heartbeat                 every heartbeat_ms while connected
//   Register and Promise carry the host's standing: the generation it lived in last, where this
//   generation began, what the host has applied, and whether the script has ended the run there.
//
// INVARIANTS
//  N1 Obeys no message of a lower term than the highest term it has seen.
//  N2 Obeys Prepare(g) only for g > every generation promised or started, Start(g) only for the g
//     promised last. Obeys PlannedChange(g) only for g > every generation promised or started, and
//     only if a generation is started or this worker is in none yet. Answers a repeated Prepare
//     again, and ignores other repeated messages. Logs and drops older ones.
//  N3 Promise(g) is sent only after the host has answered close(g - 1).
//  N4 Leave of a generation is not sent after a newer generation was promised, but a failure always
//     is. Other reports are also sent: the coordinator's ledger judges what an older generation
//     did.
//  N5 on_end() is the last call to the host.
//  N6 With a new identity the session sends nothing of the old identity any more. It drops what the
//     training thread still says about generations up to then, and numbers record batches from 1
//     again.
//
// THREAD-SAFETY: constructor, begin(), drain(), end() and the host's calls on the loop's thread;
// RunnerPort from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/base/ids.h"
#include "comm/base/limits.h"
#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/base/work_in_hand.h"
#include "comm/rpc/client.h"
#include "comm/wire/control.pb.h"
#include "worker/session/apply_gate.h"
#include "worker/session/record_queue.h"
#include "worker/session/runner_port.h"

namespace lockstep {

// The worker around the session. All calls come on the loop's thread, and must not block.
class SessionHost {
 public:
  using Closed = std::function<void(Standing)>;
  struct Heartbeat {
    Step step = 0;
    Phase phase = Phase::kTrain;
    uint32_t bucket = 0;    // finished, on a GPU by the GPU
    uint32_t enqueued = 0;  // by the host
    bool is_paused = false;
  };

  virtual ~SessionHost() = default;
  // An error ends the session: this worker does not fit the run.
  virtual Status on_registered(const wire::Registered& registered) = 0;
  // Closes all generations up to `through`. Calls `closed` exactly once, on the loop's thread, with
  // where this worker stands; it may do so inside on_close(). Afterwards nothing of a generation <=
  // `through` may take effect.
  virtual void on_close(Generation through, Closed closed) = 0;
  virtual void on_start(Generation generation, const wire::Start& start) = 0;
  // A planned change. The worker votes for it from now on, or waits for it if the worker is not in
  // a generation yet. It is void once `generation` or a later one is closed. The same change may
  // come again.
  virtual void on_planned(Generation generation, const wire::Start& next) = 0;
  // The coordinator took this worker in as a new member. The worker's state belongs to no lineage,
  // and nothing of a generation <= `through` may take effect. Called before
  // on_registered() of the new identity.
  virtual void on_new_identity(Generation through) = 0;
  virtual void on_stop(const std::string& reason) = 0;
  virtual void on_checkpoint_ack(const wire::CheckpointAck& ack) = 0;
  // A batch of records is in the journal.
  virtual void on_recorded() {}
  // This worker hangs, and the coordinator evicts it next. A person will want to know where its
  // threads are.
  virtual void on_hang() = 0;
  // Exit code 0 for ok, 75 for kCheckpointed, else the code of `why`.
  virtual void on_end(const Status& why, int exit_code) = 0;
  virtual Heartbeat heartbeat() const = 0;
  virtual Standing standing() const = 0;
  // The samples that the worker works on now. If it fails, it fails at these samples.
  virtual InHand in_hand() const { return {}; }
};

class Session final : public RunnerPort {
 public:
  enum class State { kJoining, kMember, kClosing, kPromised, kStarted, kLeaving, kEnded };

  struct Options {
    rpc::RpcClient::Options rpc;
    int64_t heartbeat_ms = 1'000;
    int64_t join_deadline_ms = 120'000;  // until the first Registered; 0: none
    std::string spill_path;
  };

  // Starts connecting at once. Registers after begin() has said who this worker is.
  Session(rpc::Transport& transport, Options options, SessionHost& host, Logger& logger);
  ~Session() override;

  // `hello`: everything of Register except member, generation and state. Call it once.
  void begin(wire::Register hello);

  // This worker was told to go. Asks the coordinator to leave it out of the next generation.
  void drain(std::string reason);

  // Ends the session from inside, for a failure before anything could be registered. on_end()
  // follows.
  void end(const Status& why);

  State state() const;
  MemberId member() const;
  Generation generation() const;  // the last started one; 0: none
  Term term() const;

  // ---- RunnerPort, from any thread
  Status add_record(Generation generation, wire::StepRecord record) override;
  Status report_eval(Generation generation, wire::EvalReport report) override;
  void report_checkpoint(Generation generation, wire::CheckpointReport report) override;
  void report_check(Generation generation, wire::CheckReport report) override;
  void suspect(Generation generation, MemberId member, std::string what) override;
  void report_end(Generation generation, Step step) override;
  void switched(Generation generation, ResumePoint since) override;
  void leave(Generation generation, wire::Leave::Reason reason, Status status,
             std::optional<ResumePoint> applied) override;
  bool are_recorded() const override;
  Result<RecordQueue::Unacknowledged> unacknowledged() const override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

const char* state_name(Session::State state);

// A fifth of the lease, so four heartbeats may get lost; at most a second.
int64_t heartbeat_interval_ms(uint32_t lease_s);

}  // namespace lockstep
