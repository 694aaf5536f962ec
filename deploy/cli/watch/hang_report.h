// The notes that the workers of a run took when their collectives last stood still
// (worker/process/hang_notes.h), as JSON for the report:
//
//   {"generation":3,"world":3,"findings":["rank 1 did not come to the sum of bucket 2 ..."],
//    "files":["/runs/shoes/logs/worker-0.hang.json", ...],
//    "ranks":[{"rank":0,"process":"worker-0","node":"vm","pid":41,"written":"...","why":"...",
//              "stands":"...","lines":["..."],"nccl":["..."]}, ...]}
//
// Lines are there for the first limits::kHangRanksShown ranks, those that others wait for first.
// The files are outside input: a file of another kind is left out, texts are printable, numbers and
// lists have limits.
//
// Thread-safety: pure functions; they read files.
#pragma once

#include <string>

namespace lockstep {

// "null" if no worker left a file. Shows the newest generation that did.
std::string hang_report(const std::string& run_dir);

}  // namespace lockstep
