#include "data/view/run_data.h"

#include <utility>

#include "data/index/facts.h"
#include "data/view/selected_dataset.h"

namespace lockstep::data {
namespace {

// 0: of a run that was begun before the key was there.
double share_of(const wire::DatasetSpec& set) {
  return set.fraction() == 0 ? 1 : set.fraction();
}

SelectionSpec training(const wire::DataSpec& data) {
  return {data.holdout(), share_of(data.train()), data.split_seed()};
}

Result<std::unique_ptr<Dataset>> open_whole(const wire::JobSpec& job, const std::string& cache_dir,
                                            const ProgressFn& progress) {
  return open_dataset(job.data().train(), Split::kTrain, cache_dir, progress, sample_cut(job));
}

Result<std::unique_ptr<Dataset>> open_eval(const wire::JobSpec& job, const std::string& cache_dir,
                                           const ProgressFn& progress) {
  const wire::DataSpec& data = job.data();
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto whole, open_dataset(data.eval(), Split::kEval, cache_dir, progress, sample_cut(job)));
  return select_kept(std::move(whole), {0, share_of(data.eval()), data.split_seed()});
}

}  // namespace

Result<RunData> open_run_data(const wire::JobSpec& job, const std::string& cache_dir,
                              const ProgressFn& progress) {
  RunData opened;
  LOCKSTEP_ASSIGN_OR_RETURN(auto whole, open_whole(job, cache_dir, progress));
  if (job.data().holdout() > 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(TwoParts parts, split(std::move(whole), training(job.data())));
    return RunData{std::move(parts.kept), std::move(parts.held_out)};
  }
  LOCKSTEP_ASSIGN_OR_RETURN(opened.train, select_kept(std::move(whole), training(job.data())));
  if (job.data().eval().path().empty()) return opened;
  LOCKSTEP_ASSIGN_OR_RETURN(opened.eval, open_eval(job, cache_dir, progress));
  LOCKSTEP_RETURN_IF_ERROR(check_eval_fits_train(*opened.train, *opened.eval));
  return opened;
}

Result<std::unique_ptr<Dataset>> open_train_data(const wire::JobSpec& job,
                                                 const std::string& cache_dir,
                                                 const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto whole, open_whole(job, cache_dir, progress));
  return select_kept(std::move(whole), training(job.data()));
}

}  // namespace lockstep::data
