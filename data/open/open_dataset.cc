#include "data/open/open_dataset.h"

#include <utility>

#include "comm/wire/data_formats.h"
#include "comm/wire/job.pb.h"
#include "data/dataset/framed_dataset.h"
#include "data/formats/arrays/cifar_dataset.h"
#include "data/formats/arrays/cifar_files.h"
#include "data/formats/arrays/idx_dataset.h"
#include "data/formats/arrays/idx_pair.h"
#include "data/formats/arrays/npy_dataset.h"
#include "data/formats/arrays/npy_pair.h"
#include "data/formats/arrays/npz_pair.h"
#include "data/formats/arrays/safetensors_files.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/formats/images/encoded_dataset.h"
#include "data/formats/tables/csv_dataset.h"
#include "data/formats/tokens/token_dataset.h"
#include "data/formats/tokens/token_files.h"
#include "data/formats/tokens/tokenized_text.h"
#include "data/open/detect_format.h"
#include "data/open/encoded_formats.h"
#include "data/open/find_place.h"

namespace lockstep::data {
namespace {

// Of images that are stored as pixels, and of tables.
Result<std::unique_ptr<Dataset>> open_stored(const wire::DatasetSpec& spec,
                                             const std::string& format, Split split,
                                             const std::string& cache_dir,
                                             const ProgressFn& progress) {
  if (format == "csv") return open_csv_dataset(spec.path(), split, progress);
  if (format == "arrow") {
    LOCKSTEP_ASSIGN_OR_RETURN(const Shards shards, find_arrow_shards(spec.path(), split));
    return open_arrow_pixels(shards, cache_dir, progress);
  }
  if (const CifarFormat* cifar = cifar_format(format)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto paths, find_cifar_files(spec.path(), *cifar, split));
    return open_cifar_dataset(paths, *cifar, cache_dir, progress);
  }
  if (format == "npz" || (format.starts_with("npy") && is_npz(spec.path()))) {
    LOCKSTEP_ASSIGN_OR_RETURN(const NpzPair pair, find_npz_pair(spec.path(), split));
    return open_npz_dataset(pair, format, cache_dir, progress);
  }
  if (format == "safetensors" || (format.starts_with("npy") && has_safetensors(spec.path()))) {
    LOCKSTEP_ASSIGN_OR_RETURN(const TensorPair pair, find_tensor_pair(spec.path(), split));
    return open_tensor_dataset(pair, format, cache_dir, progress);
  }
  if (format.starts_with("npy")) {
    LOCKSTEP_ASSIGN_OR_RETURN(const NpyPair pair, find_npy_pair(spec.path(), split));
    return open_npy_dataset(pair, format, cache_dir, progress);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxPair pair, find_idx_pair(spec.path(), split));
  return open_idx_dataset(pair, cache_dir, progress);
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_dataset(const wire::DatasetSpec& wanted, Split split,
                                              const std::string& cache_dir,
                                              const ProgressFn& progress,
                                              const SampleCut& wanted_cut) {
  if (wanted.path().empty())
    return Status(Code::kUsage, "no data path; set data.train.path to the directory of the files");
  LOCKSTEP_ASSIGN_OR_RETURN(const DataPlace place,
                            find_place(wanted, cache_dir, progress, wanted_cut));
  const wire::DatasetSpec& spec = place.spec;
  const SampleCut& cut = place.cut;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string format, resolve_format(spec.path(), spec.format()));
  if (!is_data_format(format))
    return Status(Code::kUsage,
                  "unknown data format \"" + format + "\"; known are " + known_data_formats());
  LOCKSTEP_RETURN_IF_ERROR(check_is_text(cut, spec.path(), format));
  if (is_token_format(format)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto paths, find_token_files(spec.path(), format, split));
    return open_token_dataset(paths, format, cut, cache_dir, progress);
  }
  if (is_encoded_format(format)) {
    LOCKSTEP_ASSIGN_OR_RETURN(EncodedSource found,
                              find_encoded_source(spec.path(), format, split, progress, cut.far));
    LOCKSTEP_ASSIGN_OR_RETURN(const EncodedSource source, inflated(std::move(found), cache_dir));
    return open_encoded_dataset(source, cut.frame, cache_dir, progress);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(auto stored, open_stored(spec, format, split, cache_dir, progress));
  return make_framed_dataset(std::move(stored), cut.frame);
}

}  // namespace lockstep::data
