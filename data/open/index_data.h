// What `lockstep data index PATH` does: everything that a run would make of its data before its
// first step, made ahead, where the run will find it.
//
// Thread-safety: a free function and values; any number of processes may do it at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "data/base/progress.h"
#include "data/dataset/sample_cut.h"

namespace lockstep::data {

struct IndexedData {
  struct Split {
    std::string split;  // "train", "eval", or "data" where one serves both
    std::string format;
    uint64_t samples = 0;
    std::string fingerprint;
  };
  struct File {
    std::string name;
    uint64_t bytes = 0;
  };
  std::vector<Split> splits;
  std::vector<File> made;  // in the cache directory, since this began; by name
  std::vector<File> kept;  // that were there; other data's, too
};

// Both splits, where there are two, at the same time. What is complete in `cache_dir` and belongs
// to the files as they are is left as it is, so that whoever is stopped goes on from there. Errors
// as open_dataset(). `progress` is called from one thread at a time.
Result<IndexedData> index_data(const wire::DatasetSpec& spec, const std::string& cache_dir,
                               const ProgressFn& progress, const SampleCut& cut);

}  // namespace lockstep::data
