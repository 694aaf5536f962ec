#include "worker/model/weights/initial_weights.h"

#include "data/open/find_place.h"
#include "data/open/job_sample_cut.h"
#include "data/source/url.h"
#include "worker/model/weights/model_config.h"
#include "worker/model/weights/weight_files.h"

namespace lockstep {

Result<std::string> find_initial_weights(const wire::JobSpec& job,
                                         const data::ProgressFn& progress) {
  const std::string& path = job.model().init();
  if (!source::is_url(path)) return path;
  if (path.ends_with(".json"))
    return Status(Code::kUsage, "model.init is " + path +
                                    ", an index: name the directory, which has the files too");
  wire::DatasetSpec spec;
  spec.set_path(path);
  auto place = data::find_place(spec, job.data().cache_dir(), progress, data::sample_cut(job));
  if (!place.is_ok()) return place.status().with_context("model.init");
  return place->spec.path();
}

Result<WeightTable> load_initial_weights(const wire::JobSpec& job, const ModelLayout& layout,
                                         std::span<const StateTensor> state) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string path, find_initial_weights(job));
  LOCKSTEP_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::open(path, WeightSource::kInit));
  if (!job.model().init_sha256().empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string found, files.sha256());
    LOCKSTEP_RETURN_IF_ERROR(check_weights_hash(path, job.model().init_sha256(), found));
  }
  LOCKSTEP_RETURN_IF_ERROR(check_model_config(path, job.model()));
  return load_weights(files, job.model(), layout, state);
}

}  // namespace lockstep
