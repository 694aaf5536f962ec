// Every sample of a data set read once, as training would: what is damaged is found before a run
// meets it.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"
#include "data/base/progress.h"
#include "data/dataset/sample_cut.h"

namespace lockstep::data {

struct Verification {
  std::string split;  // "train", "eval", or "data" where one serves both
  std::string format;
  uint64_t samples = 0;
  uint64_t bytes = 0;  // that were read, of samples and what else has a checksum
  double seconds = 0;
  uint64_t damaged = 0;
  std::vector<std::string> faults;         // of the first kMostFaults of these, in their order
  std::vector<std::string> damaged_files;  // whose own checksum is wrong, with all in them
};
inline constexpr size_t kMostFaults = 100;

enum class VerifyDepth {
  kSamples,  // as training reads them
  kFull,     // and the checksums that files have of their content (checksums.h)
};

// Both splits, where there are two. Images are decoded whole; of other samples, opening looks at
// every label and hashes the content (records.h), and here labels and tokens are compared with the
// classes. Memory is bounded but for 8 bytes a damaged sample. Errors as open_dataset(), when there
// is nothing to go through.
Result<std::vector<Verification>> verify_data(const wire::DatasetSpec& spec,
                                              const std::string& cache_dir, uint32_t threads,
                                              const ProgressFn& progress, const SampleCut& cut,
                                              VerifyDepth depth = VerifyDepth::kSamples);

}  // namespace lockstep::data
