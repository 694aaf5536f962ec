// The values with which a term begins, from the journal and the checkpoints on disk (term.h). It
// links these files, which decide() never sees, with the State.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/base/ids.h"
#include "comm/wire/control.pb.h"
#include "coordinator/journal/journal_entry.h"
#include "coordinator/state/check_state.h"
#include "coordinator/state/loss_watch.h"
#include "coordinator/state/worked_steps.h"

namespace lockstep::coordinator {

// A generation that was training when the coordinator died. Its members train on. The new
// coordinator takes over: it waits for them to register, and judges no member before the grace
// time.
struct LivingGeneration {
  struct Planned {
    Generation generation = 0;
    wire::Start start;
  };

  Generation generation = 0;
  wire::Start start;              // as the old coordinator pushed it
  LedgerRow row;                  // open
  std::vector<LedgerRow> closed;  // surviving rows before it that end after `completed`
  // The steps that the members of `closed` rows applied in them, and still hold records of.
  std::map<MemberId, std::vector<WorkedSteps>> worked;
  std::vector<MemberEntry> members;      // of `start` and of `planned`
  std::map<MemberId, uint64_t> batches;  // the newest batch of each member in the journal
  // Batches of these rows with steps from `completed` on, ascending by generation, member, batch.
  std::vector<RecordsEntry> unfinished;
  std::optional<Planned> planned;  // state kPlanned in the journal
};

// The values with which this term begins, from the journal and the checkpoints on disk (resume.h).
struct Beginning {
  std::string run_id;
  std::string lineage_id;
  uint64_t sequence = 0;  // of a commit of the journal
  Term term = 1;
  MemberId next_member = 1;
  Generation generation = 0;
  ResumePoint base;
  std::string base_checkpoint;
  std::vector<std::string> base_fingerprint;  // of the numerics that made it
  std::map<Step, EvalEntry> evals;
  std::vector<CheckpointEntry> checkpoints;
  std::vector<CheckpointEntry> stray;
  std::set<std::string> dropped;   // checkpoints whose reports may come again
  std::vector<MemberEntry> known;  // of the last term, in a take-over: they may still be there
  bool is_identity_stored = false;
  std::map<std::string, std::string> settings;
  CheckHistory checks;
  std::vector<SkipEntry> skips;
  LossWatch losses;
  Step completed = 0;  // == base.step, except on a take-over
  // Set on a take-over. base and base_checkpoint are unused then.
  std::optional<LivingGeneration> living;
};

}  // namespace lockstep::coordinator
