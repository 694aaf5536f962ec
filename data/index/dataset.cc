#include "data/index/dataset.h"

#include "data/index/idx_dataset.h"
#include "data/index/idx_pair.h"
#include "data/index/token_dataset.h"
#include "data/index/token_files.h"

namespace lockstep::data {

std::string cache_directory(const wire::DataSpec& data, const std::string& run_dir) {
  return data.cache_dir().empty() ? run_dir + "/cache" : data.cache_dir();
}

SequenceCut sequence_cut(const wire::ModelSpec& model) {
  return {model.block(), model.vocab()};
}

Result<std::unique_ptr<Dataset>> open_dataset(const wire::DatasetSpec& spec, Split split,
                                              const std::string& cache_dir,
                                              const ProgressFn& progress, const SequenceCut& cut) {
  if (spec.path().empty())
    return Status(Code::kUsage, "no data path; set data.train.path to the directory of the files");
  std::string format = spec.format();
  if (format.empty() || format == "auto") {
    LOCKSTEP_ASSIGN_OR_RETURN(format, detect_format(spec.path()));
  }
  if (is_token_format(format)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto paths, find_token_files(spec.path(), format, split));
    return open_token_dataset(paths, format, cut, cache_dir, progress);
  }
  if (format != "idx")
    return Status(Code::kUsage, "unknown data format \"" + format +
                                    "\"; known are auto, idx, tokens, tokens_u32 and text");
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxPair pair, find_idx_pair(spec.path(), split));
  return open_idx_dataset(pair, cache_dir, progress);
}

}  // namespace lockstep::data
