// Notes the lasting result of a trial of NCCL (comm/collectives/device_trial.h) on one GPU in a
// file of the run. A worker that computes on this GPU later in the run does not try again.
//
// Thread-safety: one thread at a time; several processes may have notes in one directory.
#pragma once

#include <string>

#include "comm/base/status.h"

namespace lockstep {

class TrialNote {
 public:
  // `gpu`: the text that tells it from all others; empty: nothing is noted, and nothing is known.
  // `library`: the version of NCCL; another version needs a trial of its own.
  TrialNote(const std::string& directory, const std::string& gpu, std::string library);

  // Why the trial failed, and the file to remove to try again. Empty: it has not.
  std::string known() const;
  Status remember(const std::string& why) const;

 private:
  std::string path_;  // empty: no file
  const std::string library_;
};

}  // namespace lockstep
