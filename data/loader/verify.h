// Reads every sample of a data set once, as training would, to find damage before a run does.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "data/base/progress.h"
#include "data/base/source_notes.h"
#include "data/dataset/sample_cut.h"

namespace lockstep::data {

struct Verification {
  std::string split;  // "train", "eval", or "data" where one serves both
  std::string format;
  uint64_t samples = 0;
  uint64_t bytes = 0;  // read, of samples and of other content with a checksum
  double seconds = 0;
  uint64_t damaged = 0;
  std::vector<std::string> faults;         // the first kMostFaults of them, in their order
  std::vector<std::string> damaged_files;  // files whose own checksum is wrong
  FilesLeftOut left_out;                   // of the directory; in the last split
};
inline constexpr size_t kMostFaults = 100;

enum class VerifyDepth {
  kSamples,  // as training reads them
  kFull,     // and the checksums that files have of their content (checksums.h)
};

// Verifies both splits, if there are two. Images are decoded whole. For other samples, opening
// looks at every label and hashes the content (records.h), and this compares labels and tokens with
// the classes. Memory is bounded, except 8 bytes for each damaged sample. Errors as open_dataset()
// if the data cannot be opened.
Result<std::vector<Verification>> verify_data(const wire::DatasetSpec& spec,
                                              const std::string& cache_dir, uint32_t threads,
                                              const ProgressFn& progress, const SampleCut& cut,
                                              VerifyDepth depth = VerifyDepth::kSamples);

}  // namespace lockstep::data
