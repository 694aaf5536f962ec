#include "data/index/dataset.h"

#include "data/index/idx_dataset.h"
#include "data/index/idx_pair.h"

namespace lockstep::data {

std::string cache_directory(const wire::DataSpec& data, const std::string& run_dir) {
  return data.cache_dir().empty() ? run_dir + "/cache" : data.cache_dir();
}

Result<std::unique_ptr<Dataset>> open_dataset(const wire::DatasetSpec& spec, Split split,
                                              const std::string& cache_dir,
                                              const ProgressFn& progress) {
  const std::string& format = spec.format();
  if (!format.empty() && format != "auto" && format != "idx")
    return Status(Code::kUsage, "unknown data format \"" + format + "\"; known are auto and idx");
  if (spec.path().empty())
    return Status(Code::kUsage, "no data path; set data.train.path to the directory of the files");
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxPair pair, find_idx_pair(spec.path(), split));
  return open_idx_dataset(pair, cache_dir, progress);
}

}  // namespace lockstep::data
