// Decides whether a journal may go on with the checkpoints on disk. Checkpoints and journal are one
// run only if both have the same lineage id (journal.h). Otherwise a lost journal would begin a
// second run among the checkpoints of the first, or go on from one with other weights.
//
//   the journal                        checkpoints on disk            verdict
//   whole                              its own, or none               goes on
//   whole                              one that it does not know,     refused
//                                      of another lineage
//   has lost its end: the head or a    any                            refused
//   checkpoint has seen a later commit
//   new: no file, or no commit         none                           starts over
//   new                                any                            refused
//   new, and workers train             any                            refused
//   damaged (journal_chain.h)          any                            refused
//
// INVARIANTS
//  A1 No run starts over where a checkpoint lies, and none goes on from a checkpoint that its
//     journal does not prove.
//  A2 A journal that has lost commits is never continued. It is rebuilt from one checkpoint
//     (rebuild.h), with a new lineage id.
//  A3 A refusal names the checkpoints and the commands that go on, and changes nothing.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/checkpoint/store.h"
#include "coordinator/journal/journal.h"

namespace lockstep::coordinator {

// kBadData for a verdict "refused". `is_alive`: workers of the run train (a take-over).
Status check_lineage(const JournalContents& contents, const std::vector<ListedCheckpoint>& on_disk,
                     const std::string& run_dir, bool is_alive);

// kBadData, with what lies in `run_dir` and how to go on. `why`: half a sentence on the journal.
Status lost_journal(const std::string& why, const std::vector<ListedCheckpoint>& on_disk,
                    const std::string& run_dir);

// Half a sentence for the console if a run starts over although there was one before. Empty: there
// was none.
std::string begins_anew(const JournalContents& contents);

}  // namespace lockstep::coordinator
