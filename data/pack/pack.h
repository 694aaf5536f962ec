// `lockstep data pack`: writes a data set of any format as Arrow IPC files.
//
//   DST/pack.json                 what is packed and how, written first
//   DST/train/data-00000-of-00003.arrow ..., DST/val/...   for a data set with both splits; else
//                                 the files lie in DST itself
//
// INVARIANTS
//  P1 A file is whole once it has its name. Several files are written at once, each by one thread.
//  P2 A second call with the same data and settings writes the files that are missing, with the
//     bytes of an undisturbed call. It refuses other data or settings.
//  P3 Samples keep their order, labels and bytes; tokens keep their streams.
//
// Thread-safety: a free function. One process at a time writes a directory; a second one gets an
// error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"
#include "data/base/column_names.h"
#include "data/base/progress.h"

namespace lockstep::data {

struct PackOptions {
  std::string compression = "none";  // or "zstd", "lz4"
  uint32_t shard_mb = 256;           // approximate; before compression
  uint32_t threads = 1;
  std::string tokenizer{};  // for text: packs its tokens (SampleCut); empty: its bytes
  ColumnNames columns{};    // of formats that have columns
};

struct PackedSplit {
  std::string directory;  // of the split's files
  std::string unit;       // "samples" or "tokens"
  uint64_t units = 0;
  uint64_t files = 0;
  uint64_t found = 0;  // how many of the files an earlier call wrote
};

struct PackReport {
  std::vector<PackedSplit> splits;
  uint64_t read_bytes = 0;     // of samples and labels, in this call
  uint64_t written_bytes = 0;  // of files, in this call
};

// Errors as open_dataset(); kUsage if `to` holds something else, or another process is writing it;
// kInternal if it cannot be written.
Result<PackReport> pack_data(const wire::DatasetSpec& spec, const std::string& to,
                             const PackOptions& options, const std::string& cache_dir,
                             const ProgressFn& progress);

}  // namespace lockstep::data
