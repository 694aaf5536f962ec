// Makes a new journal from one checkpoint, for a run whose journal is lost (lineage.h).
//
// The new journal knows this about the steps before the checkpoint:
//   that they used every sample once   from the proof in the manifest, one fold for each block
//   what was left out                  from the manifest
//   losses and learning rates          from history.jsonl as far as it reaches, and from records
//                                      in the manifest; else none
// It lacks evaluations, comparisons of weights, and which member did which step. It lists the other
// checkpoints as outside the lineage: they stay until the run deletes old ones.
//
// The new journal has a lineage id of its own. The old one stays, as journal.db.lost-N.
//
// INVARIANTS
//  B1 A crash at any point leaves the old state, or no journal, or the new one; in each of them the
//     same call works.
//  B2 Generations and members of the new journal are newer than the ones of every checkpoint there.
//
// Thread-safety: one thread. REQUIRES: no process of the run lives.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "comm/wire/control.pb.h"

namespace lockstep::coordinator {

// `name`: the name of a checkpoint of the run. kUsage if the journal is whole, so that nothing has
// to be rebuilt, or if the checkpoint has another job or other data. kNoInput if there is no such
// checkpoint. kBadData if it is damaged, or an older Lockstep wrote it.
Status rebuild_journal(const std::string& run_dir, const std::string& name,
                       const wire::JobSpec& job, const wire::DataFacts& facts);

}  // namespace lockstep::coordinator
