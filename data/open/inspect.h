// Collects what `lockstep data inspect PATH` prints.
// Thread-safety: free functions and values.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/data_facts.pb.h"
#include "comm/run/job/job.pb.h"
#include "data/base/column_names.h"
#include "data/base/progress.h"
#include "data/base/split.h"
#include "data/dataset/dataset.h"
#include "data/dataset/sample_cut.h"

namespace lockstep::data {

struct SplitInspection {
  std::string split;  // "train", "eval", or "data" if one pair serves both
  std::string format;
  std::vector<std::string> files;
  SourceNotes notes;
  uint64_t samples = 0;
  SampleShape shape;
  std::optional<DocumentCounts> documents;  // of tokens, if kept apart
  uint32_t classes = 0;
  std::vector<uint64_t> class_counts;    // by label; of images and rows only
  std::vector<std::string> class_names;  // by label; empty without names
  std::string fingerprint;
  std::vector<ChannelStatistics> statistics;  // by channel
  wire::DataLegend legend;                    // what a run keeps; empty of data for evaluation
};

struct Inspection {
  std::string path;
  FilesLeftOut left_out;                // of the whole directory
  std::vector<std::string> warnings{};  // sentences
  std::vector<SplitInspection> splits;
};

// True if the files of `path` do not say which are for training and evaluation. REQUIRES: the
// format is resolved.
Result<bool> serves_both(const std::string& path, const std::string& format,
                         const ColumnNames& columns = {});

// All that a data set of this format leaves out at a path: what its splits say, and other files of
// the directory. `taken`: the files of all splits.
FilesLeftOut left_out_of(const std::string& path, const std::string& format,
                         const std::vector<std::string>& taken, const FilesLeftOut& said);

// As open_dataset(). Without a frame in `cut`, it shows images of many sizes as most models see
// them.
Result<std::unique_ptr<Dataset>> open_any_size(const wire::DatasetSpec& spec, Split split,
                                               const std::string& cache_dir,
                                               const ProgressFn& progress, const SampleCut& cut);

// Everything below `spec.path`. `cut` matters for tokens only. Errors as open_dataset().
Result<Inspection> inspect_data(const wire::DatasetSpec& spec, const std::string& cache_dir,
                                const ProgressFn& progress = {}, const SampleCut& cut = {});

std::string to_text(const Inspection& inspection);  // a few lines, newline at the end
nlohmann::json to_json(const Inspection& inspection);
nlohmann::json to_json(const FilesLeftOut& left);

}  // namespace lockstep::data
