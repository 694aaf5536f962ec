#include "deploy/cli/run/data_here.h"

#include "comm/environment/progress_line.h"
#include "data/open/find_place.h"
#include "data/open/job_sample_cut.h"
#include "data/source/far_files/remote_files.h"

namespace lockstep {

Result<std::string> FarData::local_path(const wire::DataSpec& data, const std::string& path) {
  if (const auto it = found_.find(path); it != found_.end()) return it->second;
  wire::JobSpec job;
  *job.mutable_data() = data;
  const data::SampleCut cut = data::sample_cut(job);
  if (!source::is_far(path, cut.cache)) return path;
  ProgressLine line;
  const data::ProgressFn show = [&](const auto&... said) { line.show(said...); };
  wire::DatasetSpec spec;
  spec.set_path(path);
  const auto place = data::find_place(spec, data.cache_dir(), show, cut);
  auto found = place.is_ok() ? Result<std::string>(place->spec.path()) : place.status();
  found_.emplace(path, found);
  return found;
}

}  // namespace lockstep
