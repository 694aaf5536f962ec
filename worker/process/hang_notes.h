// Writes where a worker's collectives stand, for the report of a hang (`lockstep report`):
// RUN_DIR/logs/worker-0.hang.json, with the newest operations of its flight record and the end of
// NCCL's log. One file for each place of an agent, replaced by the next hang.
//
// WHO WRITES. Each worker writes its own file: the thread of its control connection does, or has it
// done. The training thread of a worker that hangs does not come back, but its heartbeats show that
// this thread is alive. (A worker without heartbeats is dead by its lease and does not count as
// hanging.)
//   - the worker that is told to leave because it hangs: save(), before it leaves
//   - each other worker: look(), when its generation is closed after an operation has stood still
//     for half of cluster.hang_s. No message tells it of a hang, so none can be lost, and a peer
//     that was killed leaves no file. A thread of its own writes, so that hanging storage delays no
//     worker's answer.
// The report reads files in the run directory instead of messages, so it has them after the run has
// ended, whatever became of the coordinator.
//
// Thread-safety: one thread at a time, any for the FlightRecord.
#pragma once

#include <string>

#include "comm/base/ids.h"
#include "comm/collectives/flight_record.h"
#include "worker/engine/generation_view.h"

namespace lockstep {

class HangNotes {
 public:
  struct Parts {
    const FlightRecord& flight;
    std::string path;
    std::string process;  // "worker-0"
    std::string node;
    std::string nccl_log;  // empty: none
    int64_t standstill_ms = 0;
  };

  explicit HangNotes(Parts parts) : parts_(std::move(parts)) {}

  // Writes the file. `why`: a clause for people. Errors as replace_file().
  Status save(const std::string& why, const Progress& at);

  // Writes the file aside if the collectives of the present generation stand still, once in a
  // generation. Returns whether it does.
  bool look(const Progress& at);

 private:
  std::string beginning(const std::string& why, const Progress& at) const;

  const Parts parts_;
  Generation looked_in_ = 0;
};

}  // namespace lockstep
