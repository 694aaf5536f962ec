// The coordinator's whole knowledge of a run, as a value. decide() is the only one that changes it.
//
//   kGathering ──all registered──▶ kPrepared ──all promised──▶ kStarted ──all left──▶ kEnded
//        ▲                           │  │                          │
//        └────── (next generation) ──┘  └── deadline, too few ─────┴── death, failure ──▶ kEnded
//
// A run that ended never comes back; a resume is a new term with a new State.
//
// MESSAGES, and when they count (others are refused with a typed reason and answered):
//   Register            any time; the only one that needs no fence
//   Heartbeat           any time from a member; its step only in the present generation
//   Promise             kPrepared, of exactly the prepared generation, once per member
//   StepRecords, Eval,  kStarted, of exactly the started generation; checkpoints from the writer
//   Checkpoint, Leave
//   PeerSuspect         kStarted, likewise
//   WorkerExit          any time: a proof about a process, and member ids are never used twice
//
// INVARIANTS (PROTOCOL.md; invariants.h asserts them after every event)
//  I3 term, generation, next_member, steps completed, a member's step and its acknowledged batch
//     never go back within a State; only a journalled rollback makes a new State start lower.
//  I4 A message of an older term or generation writes nothing but events to the journal.
//  I7 At most one generation is started and not closed, and at most one is prepared.
//  S1 A member has a rank and slots only in a generation that lists it; runs cover [0, V) once.
//  S2 completed <= every member's next_record; pending holds exactly the steps in between.
//
// Thread-safety: a plain value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/collectives/reduction_tree.h"
#include "comm/wire/control.pb.h"
#include "coordinator/event.h"
#include "coordinator/journal_entry.h"

namespace lockstep::coordinator {

enum class RunState : uint8_t { kGathering, kPrepared, kStarted, kEnded };
enum class MemberState : uint8_t { kRegistered, kPromised, kTraining, kLeft, kDead };

const char* run_state_name(RunState state);        // "gathering", ...
const char* member_state_name(MemberState state);  // "registered", ...

struct Member {
  MemberId id = 0;
  MemberState state = MemberState::kRegistered;
  ConnectionId connection = 0;  // 0: none at present
  std::string node;
  uint32_t local_rank = 0;
  uint32_t pid = 0;
  wire::DataAddress data;
  std::string metrics_address;
  std::vector<std::string> fingerprint;
  uint64_t flat_elements = 0;
  std::vector<uint64_t> tensor_bounds;

  uint32_t rank = 0;  // valid in the present generation
  SlotRun slots;

  int64_t heard_ms = 0;         // last message of any kind
  int64_t disconnected_ms = 0;  // valid while connection == 0
  std::string disconnected_why;

  std::optional<ResumePoint> promised;  // its answer, if it has state that may be a source
  Step step = 0;                        // applied, as its heartbeats and records say
  Phase phase = Phase::kTrain;
  uint64_t acked_batch = 0;
  Step next_record = 0;  // index of the next step it has to report

  std::optional<wire::Leave> leave;
  int64_t trouble_ms = 0;  // since when it says that its generation is broken; 0: it does not
  std::string trouble;     // in its words
};

struct Agent {
  std::string node;
  uint32_t pid = 0;
  uint32_t workers = 0;
};

// A step that some ranks of the generation have reported and others not yet.
struct PendingStep {
  uint32_t reports = 0;
  uint64_t common_hash = 0;
  MemberId first_reporter = 0;
  bool has_values = false;  // the writer's record is here
  StepEntry values;
};

struct KnownGeneration {
  Generation generation = 0;
  GenerationState state = GenerationState::kPrepared;
};

struct State {
  std::string run_id;
  Term term = 0;
  RunState run = RunState::kGathering;
  MemberId next_member = 1;
  std::map<MemberId, Member> members;
  std::map<ConnectionId, MemberId> by_connection;
  std::map<ConnectionId, Agent> agents;
  std::map<std::string, int64_t> lost_agents;  // node → since when its agent is not connected

  // Where the lineage stands before the first generation of this term.
  ResumePoint base;
  std::string base_checkpoint;  // directory; empty: initial weights from the seed

  Generation generation = 0;                 // newest number given out, in this term or before
  std::vector<KnownGeneration> generations;  // of this term
  std::vector<MemberId> ranks;       // members of the prepared or started generation, by rank
  Generation source_generation = 0;  // last started one: its members can be state sources
  std::vector<MemberId> source_members;
  wire::Start start;   // as pushed; valid in kStarted
  ResumePoint resume;  // of the started generation
  std::optional<LedgerRow> open_row;
  bool is_identity_stored = false;
  MemberId writer = 0;

  Step completed = 0;                        // steps that every rank has reported
  std::map<Step, PendingStep> pending;       // from `completed` on
  std::map<Step, EvalEntry> evals;           // of the surviving lineage, by steps applied
  std::vector<CheckpointEntry> checkpoints;  // of the surviving lineage and not dropped, by step
  std::vector<CheckpointEntry> stray;        // rolled back, still on disk perhaps
  uint64_t failed_checkpoints = 0;
  std::set<std::string> failed_names;  // counted in it; reports of them may come again

  int64_t started_ms = 0;   // this term
  int64_t prepared_ms = 0;  // valid in kPrepared
  int64_t last_tick_ms = 0;
  std::optional<int64_t> stop_ms;  // since when a stop is wanted
  std::string stop_reason;
  std::optional<int64_t> end_ms;  // since when nobody has to wait for the writer any more

  int exit_code = 0;  // valid in kEnded
  std::string message;
};

// What this term begins with, from the journal and the checkpoints on disk (resume.h).
struct Beginning {
  std::string run_id;
  Term term = 1;
  MemberId next_member = 1;
  Generation generation = 0;
  ResumePoint base;
  std::string base_checkpoint;
  std::map<Step, EvalEntry> evals;
  std::vector<CheckpointEntry> checkpoints;
  std::vector<CheckpointEntry> stray;
  bool is_identity_stored = false;
};

State begin_state(const Beginning& beginning, int64_t now_ms);

}  // namespace lockstep::coordinator
