// Runs several lockstep-worker processes, each for a part of one task. Each writes files of its
// own and needs no other. A process that dies is started again once.
//
// Thread-safety: the main thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "deploy/cli/inference/trained_place.h"

namespace lockstep {

struct PartProcesses {
  std::string what;  // for the progress line: "predicting"
  std::vector<std::string>
      words;  // of lockstep-worker; --part, --parts, --out and --progress follow
  uint32_t parts = 1;
  std::string directory;  // for their files

  std::string file(uint32_t part) const { return directory + "/part-" + std::to_string(part); }
};

// Returns once all files are written. Otherwise the error of the first process that failed, with
// what it said; the others are ended.
Status run_parts(const PartProcesses& task);

// The same with a trained model: all parts use one checkpoint. If the run deletes it meanwhile, all
// use a newer one. The words of `place` follow the words of `task`.
Status run_parts_with(const TrainedPlace& place, PartProcesses task);

}  // namespace lockstep
