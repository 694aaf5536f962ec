#include "data/open/open_dataset.h"

#include <utility>

#include "comm/run/job/data_formats.h"
#include "comm/run/job/job.pb.h"
#include "data/dataset/framed_dataset.h"
#include "data/formats/images/encoded_dataset.h"
#include "data/formats/tokens/token_dataset.h"
#include "data/formats/tokens/token_format.h"
#include "data/formats/tokens/tokenized_text.h"
#include "data/open/detect_format.h"
#include "data/open/find_place.h"
#include "data/open/formats.h"

namespace lockstep::data {

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
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string format,
                            resolve_format(spec.path(), spec.format(), cut.columns));
  if (!is_data_format(format))
    return Status(Code::kUsage,
                  "unknown data format \"" + format + "\"; known are " + known_data_formats());
  LOCKSTEP_RETURN_IF_ERROR(check_is_text(cut, spec.path(), format));
  LOCKSTEP_RETURN_IF_ERROR(check_columns(cut.columns, spec.path(), format));
  const DataFormat& row = format_at(spec.path(), format);
  if (is_token_format(format)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto paths, token_format(format).find(spec.path(), split));
    return open_token_dataset(paths, format, cut, cache_dir, progress);
  }
  if (is_encoded_format(format)) {
    LOCKSTEP_ASSIGN_OR_RETURN(EncodedSource found,
                              row.find({spec.path(), split, progress, cut.far, cut.columns}));
    LOCKSTEP_ASSIGN_OR_RETURN(const EncodedSource source, inflated(std::move(found), cache_dir));
    return open_encoded_dataset(source, cut.frame, cache_dir, progress);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto stored, row.open({spec.path(), format, split, cut.columns, cache_dir, progress}));
  return make_framed_dataset(std::move(stored), cut.frame);
}

Result<std::unique_ptr<Dataset>> open_to_evaluate(const wire::DatasetSpec& spec,
                                                  const std::string& cache_dir,
                                                  const ProgressFn& progress,
                                                  const SampleCut& cut) {
  auto part = open_dataset(spec, Split::kEval, cache_dir, progress, cut);
  if (part.is_ok() || part.status().code() != Code::kNoInput) return part;
  auto all = open_dataset(spec, Split::kTrain, cache_dir, progress, cut);
  return all.is_ok() ? std::move(all) : std::move(part);
}

}  // namespace lockstep::data
