// The coordinator's whole knowledge of a run, as a value. Only decide() changes it.
//
//   kGathering ─enough registered─▶ kPrepared(g) ─all promised─▶ kStarted(g) ─all left─▶ kEnded
//        ▲                           │  ▲   ▲ │                    │  │  ▲ │
//        └─ first start, one died ───┘  └───┼─┘ death: g+1         │  └──┘ planned change, switched
//                                           └───── death ──────────┘
//   kPrepared, kStarted ─no member holds the state, or nothing can prove a step─▶ kTermEnded
//
// A run that ended never comes back. After kTermEnded the next term begins from the newest
// checkpoint, in the same process, with a new State.
//
// MEMBERS. A process that registers gets an id and is a newcomer: kRegistered, in `waiting`. A
// prepared generation lists members. They are kRegistered until they promise, then kPromised, then
// kTraining, and kLeft when they are done (void if another generation is prepared). kDead and kGone
// are final: a process that was declared dead gets a new id when it comes back, and a drained one
// gets its Goodbye.
//
// PLANNED CHANGE. While kStarted(g), at most one generation g' > g is planned. The coordinator
// journals it and pushes it to the members of g and to joiners. Any message that speaks for g'
// proves that its members have switched. The coordinator adopts it: it closes the row of g at
// `since`, and g' is the started generation. A death meanwhile prepares g'' > g'. When g'' starts,
// g' is abandoned, unless an answer shows that a member lived in it.
//
// MESSAGES, and when they count (decide() refuses and answers others with a typed reason):
//   Register            any time; the only one that needs no fence
//   Heartbeat           any time from a member; its step only in the present generation
//   Promise             kPrepared, of exactly the prepared generation, once per member
//   SwitchReport        of the planned generation or of the started one that was planned
//   StepRecords         of any generation of the lineage, if its row covers the step; records that
//                       no row covers are acknowledged and not kept
//   Eval, Checkpoint    the same; only the present writer hears what to delete
//   EndReport           of the started generation; also while the next one is prepared
//   CheckReport         of the started generation, or of an older one while its check is pending
//   Leave, PeerSuspect  kStarted, of exactly the started generation. A member that has not crossed
//                       the boundary of a switch yet may send them of the one before. FAILED any
//                       time. A leaver's DRAINED proves no switch and is void with the next
//                       prepare.
//   DrainRequest        any time
//   WorkerExit,         any time, and repeatedly: they are proofs about a process, and member ids
//   AgentHello.living   are never used twice
//   NodeNotice          any time from an agent, and repeatedly: it is a fact about places
//   Command             any time, from a connection that is neither member nor agent
//
// INVARIANTS (PROTOCOL.md; invariants.h asserts them after every event)
//  I3 term, generation, next_member, completed steps, a member's step and its acknowledged batch
//     never go back within a State. Only a rollback moves steps back, journalled in the same turn.
//  I4 A message of another term writes only events. A step, a batch or an evaluation is journalled
//     only if a row of the surviving lineage covers it.
//  I7 At most one generation is started and not closed, at most one is prepared, at most one is
//     planned. The planned one is newer than the started one.
//  S1 A member has a rank and slots only in a generation that lists it. Runs cover [0, V) once.
//  S2 A row covers every completed step. A step of the open row is complete only when every member
//     of the started generation has reported it.
//  S3 State sources are answers of members of the last started generation, and lie in the lineage.
//  S4 History gets each step once, in order.
//
// Thread-safety: a plain value.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/base/ids.h"
#include "comm/base/work_in_hand.h"
#include "comm/collectives/reduction_tree.h"
#include "comm/wire/control.pb.h"
#include "coordinator/journal/journal_entry.h"
#include "coordinator/state/beginning.h"
#include "coordinator/state/check_state.h"
#include "coordinator/state/event.h"
#include "coordinator/state/loss_watch.h"
#include "coordinator/state/node_names.h"
#include "coordinator/state/script_end.h"
#include "coordinator/state/speed_watch.h"
#include "coordinator/state/worked_steps.h"

namespace lockstep::coordinator {

enum class RunState : uint8_t { kGathering, kPrepared, kStarted, kTermEnded, kEnded };
enum class MemberState : uint8_t { kRegistered, kPromised, kTraining, kLeft, kGone, kDead };

const char* run_state_name(RunState state);        // "gathering", ...
const char* member_state_name(MemberState state);  // "registered", ...

// A member's answer to a prepare.
struct Answer {
  Generation lived = 0;                // newest generation in which it could apply; 0: none
  ResumePoint since;                   // where that generation began for it; valid if lived > 0
  std::optional<ResumePoint> applied;  // none: it holds no state
  bool is_end = false;                 // the script ended the run where it stands
};

// How far a worker is, from its heartbeats. Totally ordered.
struct MemberProgress {
  Step step = 0;  // applied
  Phase phase = Phase::kTrain;
  uint32_t bucket = 0;  // finished in the step, by a GPU, not its host; or batches that are scored
  bool operator==(const MemberProgress&) const = default;
  std::strong_ordering operator<=>(const MemberProgress& other) const {
    return std::tuple(step, order_of(phase), bucket) <=>
           std::tuple(other.step, order_of(other.phase), other.bucket);
  }
};

struct Member {
  MemberId id = 0;
  MemberState state = MemberState::kRegistered;
  ConnectionId connection = 0;  // 0: none at present
  std::string node;
  uint32_t local_rank = 0;
  uint32_t pid = 0;
  uint64_t process = 0;  // no other one has it, whatever its pid; 0: unknown
  wire::DataAddress data;
  std::string metrics_address;
  uint64_t largest_slot = 0;  // samples that fit; 0: not measured (decide/open_term.h)
  wire::GpuIdentity gpu;      // empty: it computes on none, or has not named it

  Generation listed = 0;  // newest prepared or started generation with it
  Generation placed = 0;  // started generation to which rank and slots belong
  uint32_t rank = 0;
  SlotRun slots;

  int64_t heard_ms = 0;         // last message of any kind
  int64_t disconnected_ms = 0;  // valid while connection == 0
  std::string disconnected_why;
  bool is_missing = false;    // its agent does not list it as living
  bool has_exited = false;    // its agent has reaped it
  bool is_draining = false;   // the next planned change leaves it out
  int farewell = 0;           // the exit code of its Goodbye
  int64_t dead_ms = 0;        // when it became kDead
  bool is_left_over = false;  // dead, and its process may still exist
  bool has_told = false;      // it said itself that it failed, and what it had in hand

  std::optional<Answer> answer;  // to the present prepare
  Generation lived = 0;          // newest generation that it has begun for sure
  Step step = 0;                 // applied, from its heartbeats and records
  Phase phase = Phase::kTrain;
  MemberProgress progress;  // in the present generation
  uint32_t enqueued = 0;    // buckets that its host has given to its GPU, in the same step
  bool is_paused = false;   // a debugger has stopped its script

  uint64_t acked_batch = 0;
  Generation record_generation = 0;  // of its last record; 0: unknown
  Step next_record = 0;              // valid if record_generation > 0
  std::vector<WorkedSteps> worked;   // were not complete when noted
  std::optional<Step> copied_at;     // where a peer gave it the state that it holds

  std::optional<wire::Leave> leave;
};

struct KnownAgent {
  std::string node;
  uint32_t pid = 0;
  uint32_t workers = 0;  // how many it keeps running
  std::string metrics_address;
  std::set<uint32_t> living;   // its pids when it connected, without those reported as ended
  int64_t since_ms = 0;        // when it connected
  std::set<uint32_t> awaited;  // pids of `living` that have not registered yet
  std::string notice = {};     // what it last said about its whole node
};

// The layout that all members must share. The first member of the term sets it.
struct Layout {
  MemberId member = 0;
  std::vector<std::string> fingerprint;
  uint64_t flat_elements = 0;
  std::vector<uint64_t> tensor_bounds;
  wire::DataFacts facts;              // these two of an open script only
  std::vector<IdentityEntry> script;  // as it is journalled
};

// A step that some members have reported and that is not complete.
struct PendingStep {
  uint32_t reports = 0;
  uint64_t common_hash = 0;
  MemberId first_reporter = 0;
  StepEntry values;  // the writer's report, or the first one until the writer's comes
};

struct KnownGeneration {
  Generation generation = 0;
  GenerationState state = GenerationState::kPrepared;
};

// A ledger row, and the member that wrote checkpoints in it; 0: unknown.
struct Era {
  LedgerRow row;
  MemberId writer = 0;
};

struct PlannedGeneration {
  Generation generation = 0;
  wire::Start start;            // without resume
  std::vector<MemberId> ranks;  // by rank
};

// Members report that their generation broke, and nothing proves who died.
struct Suspicion {
  int64_t since_ms = 0;
  std::map<MemberId, MemberId> named;  // reporter → suspect; 0: no particular one
  std::string what;                    // from the first report
};

// A process made no progress and was evicted for it.
struct Hang {
  Step step = 0;  // the step in work
  MemberId member = 0;
  MemberId next_member = 0;  // State's then: smaller ids may have hung at the same time
  std::string who;           // for people
};

// A process that ended, and the samples it was computing.
struct Casualty {
  std::string who;  // for people
  InHand in_hand;
  std::optional<Hang> hang;  // none: it died by itself
  std::string stood;         // where its threads and processes stood, or the traceback of `error`
  std::string error;         // that the script raised (decide/poison.cc); empty: none
};

// A checkpoint that its writer has reported and that does not count yet
// (decide/decide_checkpoint.cc).
struct WrittenCheckpoint {
  MemberId member = 0;
  Generation generation = 0;
  wire::CheckpointReport report;
  bool is_read = false;  // the coordinator has seen the manifest that the writer reported
  int64_t since_ms = 0;
  int64_t looked_ms = 0;
};

// Keeps a place out for a while after an eviction without proof.
struct Bar {
  int64_t until_ms = 0;
  uint32_t times = 0;
};

// The knowledge that a term leaves to the next one of the same process. The journal does not have
// it. A new process learns the casualties when agents report the exits again, and bars by another
// eviction. It does not learn which of them hung.
struct Experience {
  uint32_t fruitless = 0;  // beginnings in a row after which no step was completed
  std::vector<Casualty> casualties;
  std::map<std::pair<std::string, uint32_t>, Hang> hung;  // (node, pid), until their exits are told
  std::map<Place, Bar> barred;
  // (node, pid) → Member.process of members that have not left and whose end is not proven. In the
  // next term they register at once, since they hold what they train, or they hang.
  std::map<std::pair<std::string, uint32_t>, uint64_t> known;
};

// An agent says that no worker should compute at a place (decide/unfit.cc).
struct Unfit {
  uint32_t agent = 0;  // pid of the one that said so
  std::string reason;
  bool is_current = true;  // false: its agent has connected again, and not repeated it yet
};

struct State {
  std::string run_id;
  std::string lineage_id;  // of the journal
  uint64_t sequence = 0;   // of its newest commit
  Term term = 0;
  RunState run = RunState::kGathering;
  MemberId next_member = 1;
  std::map<MemberId, Member> members;
  std::map<ConnectionId, MemberId> by_connection;
  std::map<std::pair<std::string, uint32_t>, MemberId> by_process;  // (node, pid), the living
  std::set<MemberId> waiting;     // alive, in neither the prepared nor the started generation
  std::set<Place> replacements;   // places where an agent starts another process after a death
  std::map<Place, int> given_up;  // where an agent starts none any more: code of the last process
  std::map<ConnectionId, KnownAgent> agents;
  // Node, and Register.process of a process that has ended there; the newest, oldest first. A
  // network may deliver what it has said after its agent's word that it is gone.
  std::deque<std::pair<std::string, uint64_t>> ended;
  std::map<Place, Unfit> unfit;
  NodeNames node_names;
  std::optional<Layout> layout;
  std::string code_hash;   // of the run's script, until somebody resumes the run; empty: not known
  std::string state_hash;  // of the state that the run's script makes; empty: not known
  uint32_t wanted_workers = 0;                      // from a command; 0: as in the job
  std::map<std::string, uint32_t> workers_of_node;  // how many each agent should keep running
  // Nodes that keep no workers because the run was given fewer, with the number that they kept
  // before. Drained nodes, and nodes that never had workers, are not in it.
  std::map<std::string, uint32_t> emptied;
  // Members that a command told to leave, until their processes have ended.
  std::set<MemberId> ordered_to_leave;

  // Where the lineage stands before the first generation of this term.
  ResumePoint base;
  std::string base_checkpoint;                // directory; empty: initial weights from the seed
  std::vector<std::string> base_fingerprint;  // of the numerics that made it; empty: unknown

  Generation generation = 0;       // the present one: prepared or started; else the newest number
  Generation last_generation = 0;  // newest number ever used, in this term or before
  std::vector<KnownGeneration> generations;  // of this term: prepared, planned or started
  std::vector<MemberId> ranks;               // members of the present generation, by rank
  Generation source_generation = 0;  // last started one; only the next start closes it; 0: none
  std::vector<MemberId> source_members;
  std::map<Generation, Era> lineage;  // of this term, and the needed part of earlier ones
  wire::Start start;                  // of the last started generation
  ResumePoint resume;                 // where the last started generation began
  bool is_switched = false;           // the last started generation began by a planned change
  std::optional<PlannedGeneration> planned;
  std::set<MemberId> leavers;  // left out by the last planned change, without a Goodbye yet
  bool change_due = false;     // decide() must look whether another change is due
  bool is_identity_stored = false;
  MemberId writer = 0;

  std::optional<ScriptEnd> script_end;       // none: the script has not ended the run
  Step completed = 0;                        // steps that are in the journal for good
  Step in_history = 0;                       // steps in the history
  std::map<Step, PendingStep> pending;       // from `completed` on
  std::map<Step, uint64_t> early;            // hashes of steps complete before all had reported
  std::map<Step, EvalEntry> evals;           // of the surviving lineage, by steps applied
  std::vector<CheckpointEntry> checkpoints;  // of the surviving lineage and not dropped, by step
  std::vector<CheckpointEntry> stray;        // outside the lineage, and maybe still on disk
  std::map<std::string, WrittenCheckpoint> written;  // by name
  CheckHistory checks;
  std::map<std::pair<Generation, Step>, PendingCheck> pending_checks;
  uint64_t failed_checkpoints = 0;
  std::string early_death;  // of the last worker that ended before it registered, with its words
  std::set<std::string> failed_names;  // counted above, because their reports may come again
  std::set<std::string> dropped;       // whose writer may not have heard it; the newest of them

  std::vector<SkipEntry> skips;  // ascending by step and slot
  LossWatch losses;
  SpeedWatch speeds;
  std::optional<Suspicion> suspicion;
  Step fruitful_to = 0;             // the step that the newest beginning with progress came to
  std::optional<Step> unexplained;  // step in which a generation broke without a culprit
  std::optional<Step> stood_still;  // the step without progress that led to kPrepared, if one did
  Experience experience;
  std::optional<int64_t> brake_ms;  // since when evictions by silence are on hold
  std::optional<int64_t> lost_ms;   // since when all holders of the state are dead

  int64_t started_ms = 0;   // when this term began
  int64_t gathered_ms = 0;  // first registration; 0: none yet
  int64_t progress_ms = 0;  // when a member of the started generation last made progress
  Step front_step = 0;      // the most steps that one of its members has applied
  int64_t front_ms = 0;     // since when
  int64_t slowest_ms = 0;   // the longest step in it so far; 0: none is done
  int64_t prepared_ms = 0;  // valid in kPrepared
  int64_t last_tick_ms = 0;
  bool is_take_over = false;       // members of an earlier coordinator may still register
  bool is_interrupted = false;     // a take-over, after a prepared generation that never started
  std::optional<int64_t> stop_ms;  // when somebody asked for a stop
  std::string stop_reason;
  bool is_shrinking = false;      // stops for too few workers; the next term waits for more
  std::optional<int64_t> end_ms;  // since when no member waits for the writer any more

  int exit_code = 0;  // valid in kEnded
  std::string message;
};

}  // namespace lockstep::coordinator
