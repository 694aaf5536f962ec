// `lockstep data index PATH`: makes everything that a run would make of its data before its first
// step, ahead of time, where the run finds it.
//
// Thread-safety: a free function and values; any number of processes may do it at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "data/base/progress.h"
#include "data/dataset/sample_cut.h"

namespace lockstep::data {

struct IndexedData {
  struct Split {
    std::string split;  // "train", "eval", or "data" if one serves both
    std::string format;
    uint64_t samples = 0;
    std::string fingerprint;
  };
  struct File {
    std::string name;
    uint64_t bytes = 0;
  };
  std::vector<Split> splits;
  std::vector<File> made;  // in the cache directory, since this call began; by name
  std::vector<File> kept;  // were there already, also files of other data
};

// Makes both splits, if there are two, at the same time. It leaves everything in `cache_dir` that
// is complete and belongs to the files as they are, so a stopped call goes on from there. Calls
// `progress` from one thread at a time. Errors as open_dataset().
Result<IndexedData> index_data(const wire::DatasetSpec& spec, const std::string& cache_dir,
                               const ProgressFn& progress, const SampleCut& cut);

}  // namespace lockstep::data
