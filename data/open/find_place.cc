#include "data/open/find_place.h"

#include "data/source/far_files/remote_files.h"

namespace lockstep::data {

Result<DataPlace> find_place(const wire::DatasetSpec& spec, const std::string& cache_dir,
                             const ProgressFn& progress, const SampleCut& cut) {
  DataPlace place{spec, cut};
  const bool is_found = cut.far != nullptr && spec.path() == cut.far->path();
  if (is_found || !source::is_far(spec.path(), cut.cache)) return place;
  LOCKSTEP_ASSIGN_OR_RETURN(place.cut.far,
                            source::RemoteFiles::open(spec.path(), cache_dir, cut.cache, progress));
  place.spec.set_path(place.cut.far->path());
  return place;
}

}  // namespace lockstep::data
