// The shared parts of one simulation: time, chance, network, data plane, disk, the job, the trace,
// and the checks that look at everything from outside.
//
// Thread-safety: one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/prng.h"
#include "comm/rpc/memory_transport.h"
#include "comm/run/evaluation/eval_track.h"
#include "comm/run/plan/step_plan.h"
#include "comm/wire/control.pb.h"
#include "tests/sim/world/disk.h"
#include "tests/sim/world/fabric.h"
#include "tests/sim/world/reference.h"
#include "tests/sim/world/trace.h"

namespace lockstep::sim {

inline constexpr char kLearningRate[] = "optimizer.lr";  // a fact that a script tells of itself

// Points in a history at which a fault may strike exactly.
enum class Moment : uint8_t {
  kBeforePublish,
  kReading,
  kBeforeApply,
  kApplying,
  kApplied,
  kClosing,
  kClosed,
  kStarted,
  kTransfer,
  kSwitching,
  kEvaluating,
  kEvaluated,
  kCheckpointWritten,
  kFinalWritten,
  kLeaving,
  kPlanned,
  kEdge,  // in the script's code between two epochs
  kCount,
};
// Random faults strike at the moments before it. A new moment comes last, or it would change seeds.
inline constexpr auto kDrawnMoments = static_cast<uint64_t>(Moment::kEdge);
const char* moment_name(Moment moment);

// The generation whose start this entry gives to its members, to begin at once or to switch to by
// themselves. 0: none.
Generation told_by(const coordinator::JournalEntry& entry);

// A worker has applied step `step` (0-based). `after` is its new state.
struct Applied {
  std::string process;
  MemberId member = 0;
  Generation generation = 0;
  Step step = 0;
  ModelState after;
};

// A worker has begun a generation with `state` at `at`.
struct Installed {
  std::string process;
  MemberId member = 0;
  Generation generation = 0;
  ResumePoint at;
  ModelState state;
  EvalTrack track;  // of the evaluations before the state
};

// A worker has made an evaluation. `track` includes it.
struct Evaluated {
  std::string process;
  Generation generation = 0;
  EvalTrack track;
};

// A worker has run the script's code between two epochs. `after` is its new state.
struct Crossed {
  std::string process;
  Generation generation = 0;
  ModelState after;
};

// A worker has come to the end of the run.
struct Finished {
  std::string process;
  Generation generation = 0;
  ResumePoint at;
};

// Observes from outside, and never changes anything.
class Check {
 public:
  virtual ~Check() = default;
  virtual void on_applied(const Applied&) {}
  virtual void on_installed(const Installed&) {}
  virtual void on_evaluated(const Evaluated&) {}
  virtual void on_crossed(const Crossed&) {}
  virtual void on_finished(const Finished&) {}
  // The script has ended the run at this point, as this worker knows.
  virtual void on_ended(const Finished&) {}
  // kill -9 of a worker, or the loss of its machine.
  virtual void on_killed(const std::string& process, bool in_evaluation) {
    (void)process;
    (void)in_evaluation;
  }
  virtual void on_commit(const Disk::Entries&) {}
  virtual void on_message(const std::string& from, const std::string& to, const wire::Envelope&) {
    (void)from;
    (void)to;
  }
  virtual void at_end() {}
  // Bad samples have stopped the run for good before its end.
  virtual void at_stop() {}
};

struct Failure {
  std::string check;
  std::string text;
};

// How the script of a run ends it before its last step (coordinator/PROTOCOL.md).
enum class ScriptEnds : uint8_t {
  kNever,
  kInBody,   // all slots vote for it in the step to `script_steps`, and in later ones
  kInApply,  // every member says so as it applies that step
  kByClock,  // each process votes from a time of its own on
  kAtEdge,   // every member says so at the first edge after as many steps
};

struct WorldOptions {
  uint32_t nodes = 2;
  uint32_t workers_per_node = 2;
  uint32_t slots = 4;
  uint64_t steps = 24;
  uint64_t samples = 64;
  uint64_t global_batch = 8;
  uint32_t turns = 1;  // steps on each batch; `steps` is a multiple of it
  uint64_t checkpoint_every = 8;
  bool has_eval = true;
  uint64_t eval_every = 0;  // steps; 0: only at ends
  std::string best = "none";
  uint32_t patience = 0;
  int64_t compute_ms = 20;  // longest computation of a bucket
  int64_t connect_deadline_ms = 10'000;
  int64_t delay_ms = 3;  // longest delay of a message
  uint32_t lease_s = 1;
  uint32_t hang_s = 5;
  uint64_t check_every = 0;  // steps between two checks for silent corruption
  bool skips_bad_samples = false;
  uint32_t read_ahead = 0;  // steps that a loader reads ahead
  bool rebalances = false;
  ScriptEnds script_ends = ScriptEnds::kNever;
  uint64_t script_steps = 0;   // to the end; not kByClock
  int64_t script_ends_ms = 0;  // kByClock: no process votes before
  bool is_script = false;      // only the workers know the data, and tell what they train
  bool has_edges = false;      // the script has code between two epochs, which changes the state
  int64_t edge_ms = 2;         // longest time that it takes
  double drift = 0;            // clocks of processes drift by at most this share
};

// Silent errors of a machine.
enum class Damage : uint8_t {
  kWeights,    // one bit of the weights before a step, once: wrong in all that follows
  kResult,     // one bit of the weights after a step, once: no check has seen it yet
  kGradients,  // all gradients that it computes
  kSums,       // all sums that it adds up
  kCount,
};

// A slot of a step whose samples harm their readers.
struct BadSlot {
  Step step = 0;
  uint32_t slot = 0;
};

class World {
 public:
  World(uint64_t seed, const WorldOptions& options, std::string directory);

  const uint64_t seed;
  const WorldOptions options;
  const std::string directory;  // of this run, for the few real files
  wire::JobSpec job;
  wire::DataFacts facts;       // what the workers read
  wire::DataFacts facts_file;  // what facts.pb says
  RunShape shape;
  std::map<std::string, std::string> script;  // what the script says of itself

  rpc::SimLoop loop;
  Prng prng;
  Trace trace;
  rpc::MemoryNetwork network{loop};
  Fabric fabric;
  Disk disk;
  Reference reference;
  std::vector<std::unique_ptr<Check>> checks;
  std::vector<Failure> failures;

  // coordinator.json
  struct Endpoint {
    rpc::Address control;
    Term term = 0;
    uint32_t pid = 0;
  };
  std::optional<Endpoint> endpoint;

  // Processes that were stopped, or cut off from another process: others may take them for dead.
  std::set<std::string> disturbed;

  // Errors in data and machines. Places are node/wRANK.
  std::optional<BadSlot> deadly;                          // kills its readers
  uint32_t victims = 0;                                   // the number of these readers
  std::optional<BadSlot> absurd;                          // makes the loss NaN or infinite
  std::optional<Step> raises;                             // at which the script raises, at any slot
  std::map<std::string, int64_t> slowness;                // by place: times as slow as the others
  std::set<std::pair<std::string, uint32_t>> unfit_gpus;  // by node and local rank
  std::map<std::string, Damage> damaged;       // by place: not yet found and cut out of the lineage
  std::set<std::string> was_damaged;           // places that were ever damaged
  std::map<std::string, uint64_t> misread;     // by place: samples that a script finds only there
  std::map<std::string, std::string> mistold;  // by place: the lr that a script has only there
  std::optional<Finished> ended;  // by its script; from a member that is not left behind

  // Fills in what a worker of this place registers with.
  void tell(const std::string& place, wire::Register* hello) const;
  uint32_t next_pid() { return ++last_pid_; }
  double clock_rate(uint32_t pid) const;
  uint64_t digest_of(Step step, uint32_t slot);
  bool kills(Step step, uint32_t slot) const;
  double loss_of(Step step, const SkipSet& skips) const;
  // Whether the script of this process wants the run to end with the step in work, or has just
  // ended it after `applied` steps.
  bool votes_to_end(const std::string& process, Step applied) const;
  bool is_ended_in_apply(Step applied) const;
  bool is_ended_at_edge(Step applied) const;
  // Whether a newer generation has started after a death. The acts of a member that has not heard
  // of it take no effect.
  bool is_left_behind(Generation generation) const { return generation < newest_start_; }
  // The step at which the run ends by its plan or its script.
  Step last(Generation generation = kNewestGeneration);
  // The evaluations of the undisturbed run until `step`, and the step at which it ends: as
  // `generation` computes them, by default the newest one.
  EvalTrack track_until(Step step, Generation generation = kNewestGeneration);
  Step end(Generation generation = kNewestGeneration);
  // Whether an edge follows the state after `step` steps, and whether a state at `at` has crossed
  // it.
  bool has_edge(Step step, Generation generation = kNewestGeneration);
  bool is_past_edge(const ResumePoint& at, Generation generation);
  // The value that the code of an edge is told of this state.
  uint64_t seen_at_edge(const ModelState& state, Generation generation);
  // The result of an evaluation of this state.
  wire::EvalReport evaluation_of(const ModelState& state) const;
  // The time that a worker of this place computes a slot's share of a bucket.
  int64_t slot_ms(const std::string& place);
  // Pokes every process that waits for the data plane.
  void poke_after(int64_t ms);

  void fail(const std::string& check, const std::string& text);
  void note_applied(const Applied& applied);
  void note_installed(const Installed& installed);
  void note_evaluated(const Evaluated& evaluated);
  void note_crossed(const Crossed& crossed);
  void note_finished(const Finished& finished);
  void note_ended(const Finished& ended);
  void note_killed(const std::string& process, bool in_evaluation);

  // Faults listen here. They must not act at once, but through the loop.
  void moment(Moment moment, const std::string& process);
  std::vector<std::function<void(Moment, const std::string&)>> on_moment;

 private:
  void follow(const coordinator::GenerationEntry& entry);

  uint32_t last_pid_ = 1'000;
  std::set<Generation> planned_;
  Generation newest_start_ = 0;  // after a death
  std::map<std::pair<Step, uint32_t>, uint64_t> digests_;
};

class SimClock final : public Clock {
 public:
  explicit SimClock(const rpc::Loop& loop) : loop_(loop) {}
  int64_t monotonic_ns() const override { return loop_.now_ms() * 1'000'000; }
  int64_t wall_ms() const override { return 1'700'000'000'000 + loop_.now_ms(); }

 private:
  const rpc::Loop& loop_;
};

}  // namespace lockstep::sim
