#include "data/view/run_data.h"

#include <filesystem>
#include <utility>

#include "data/dataset/facts.h"
#include "data/open/job_sample_cut.h"
#include "data/open/open_dataset.h"
#include "data/view/mixed_dataset.h"
#include "data/view/selected_dataset.h"

namespace lockstep::data {
namespace {

// 0: a run that began before the key existed.
double share_of(const wire::DatasetSpec& set) {
  return set.fraction() == 0 ? 1 : set.fraction();
}

SelectionSpec training(const wire::DataSpec& data) {
  return {data.holdout(), share_of(data.train()), data.split_seed()};
}

bool is_same_place(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  return (fs::path(a) / "").lexically_normal() == (fs::path(b) / "").lexically_normal();
}

Result<std::unique_ptr<Dataset>> open_whole(const wire::JobSpec& job, const std::string& cache_dir,
                                            const ProgressFn& progress) {
  return open_dataset(job.data().train(), Split::kTrain, cache_dir, progress, sample_cut(job));
}

// Mixes `train`, a part of the data set with the fingerprint `whole_train`, with the sets of
// data.mix. Returns `train` as it is if there are none.
Result<std::unique_ptr<Dataset>> mix_with_others(const wire::JobSpec& job,
                                                 std::unique_ptr<Dataset> train,
                                                 const std::string& whole_train,
                                                 const std::string& cache_dir,
                                                 const ProgressFn& progress) {
  const wire::DataSpec& data = job.data();
  if (data.mix_size() == 0) return train;
  std::vector<WeightedDataset> parts;
  parts.push_back({std::move(train), data.mix_weight(), whole_train});
  for (const wire::MixSpec& spec : data.mix()) {
    wire::DatasetSpec set;
    set.set_path(spec.path());
    set.set_format(spec.format());
    set.set_fraction(spec.fraction());
    LOCKSTEP_ASSIGN_OR_RETURN(
        auto whole, open_dataset(set, Split::kTrain, cache_dir, progress, sample_cut(job)));
    const std::string fingerprint = whole->fingerprint();
    LOCKSTEP_ASSIGN_OR_RETURN(auto part,
                              select_kept(std::move(whole), {0, share_of(set), data.split_seed()}));
    parts.push_back({std::move(part), spec.weight(), fingerprint});
  }
  return mix(std::move(parts));
}

Result<std::unique_ptr<Dataset>> open_eval(const wire::JobSpec& job, const std::string& cache_dir,
                                           const ProgressFn& progress) {
  const wire::DataSpec& data = job.data();
  // All of the training data's own directory would include the data that the model learns from.
  const bool is_own = !is_same_place(data.eval().path(), data.train().path());
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto whole,
      is_own ? open_to_evaluate(data.eval(), cache_dir, progress, sample_cut(job))
             : open_dataset(data.eval(), Split::kEval, cache_dir, progress, sample_cut(job)));
  return select_kept(std::move(whole), {0, share_of(data.eval()), data.split_seed()});
}

}  // namespace

Result<RunData> open_run_data(const wire::JobSpec& job, const std::string& cache_dir,
                              const ProgressFn& progress) {
  RunData opened;
  const wire::DataSpec& data = job.data();
  LOCKSTEP_ASSIGN_OR_RETURN(auto whole, open_whole(job, cache_dir, progress));
  const std::string fingerprint = whole->fingerprint();
  if (data.holdout() > 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(TwoParts parts, split(std::move(whole), training(data)));
    opened.eval = std::move(parts.held_out);
    opened.train = std::move(parts.kept);
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(opened.train, select_kept(std::move(whole), training(data)));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(opened.train, mix_with_others(job, std::move(opened.train), fingerprint,
                                                          cache_dir, progress));
  if (data.holdout() > 0 || data.eval().path().empty()) return opened;
  LOCKSTEP_ASSIGN_OR_RETURN(opened.eval, open_eval(job, cache_dir, progress));
  LOCKSTEP_RETURN_IF_ERROR(check_eval_fits_train(*opened.train, *opened.eval));
  return opened;
}

Result<std::unique_ptr<Dataset>> open_train_data(const wire::JobSpec& job,
                                                 const std::string& cache_dir,
                                                 const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto whole, open_whole(job, cache_dir, progress));
  const std::string fingerprint = whole->fingerprint();
  LOCKSTEP_ASSIGN_OR_RETURN(auto train, select_kept(std::move(whole), training(job.data())));
  return mix_with_others(job, std::move(train), fingerprint, cache_dir, progress);
}

}  // namespace lockstep::data
