// Presents remote data as local files.
// Thread-safety: a free function.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "data/base/progress.h"
#include "data/dataset/sample_cut.h"

namespace lockstep::data {

// A spec and a cut that the code below handles as if the data were local.
struct DataPlace {
  wire::DatasetSpec spec;
  SampleCut cut;
};

// Opens data at a URL or on a slow mount (SampleCut::cache); passes local data on unchanged. Errors
// of source::RemoteFiles::open().
Result<DataPlace> find_place(const wire::DatasetSpec& spec, const std::string& cache_dir,
                             const ProgressFn& progress, const SampleCut& cut);

}  // namespace lockstep::data
