#include "worker/process/watch_far_data.h"

#include <algorithm>
#include <set>

#include "data/io/file_system.h"
#include "data/source/far_files/remote_files.h"

namespace lockstep {

void watch_far_data(const data::Dataset& train, const data::Dataset* evaluation,
                    const std::string& cache, const EngineMakerHost& host) {
  std::set<const source::RemoteFiles*> sources;  // both may be of one
  for (const data::Dataset* data : {&train, evaluation})
    if (data != nullptr)
      for (const auto& each : data->far()) sources.insert(each.get());
  if (sources.empty()) return;
  // Once for each machine: machines may have different disks at the same place.
  if (host.options.local_rank == 0) {
    if (data::is_on_remote_file_system(cache))
      host.logger.warn("cache_far_away",
                       "data.cache_dir is " + cache +
                           ", on a network file system, but it caches remote data; name a "
                           "directory on a local disk",
                       {{"path", cache}});
    const std::string why = (*sources.begin())->why_disk_keeps_nothing();  // it is one cache
    if (!why.empty()) host.logger.warn("cache_keeps_nothing", why, {{"path", cache}});
  }
  host.metrics.far_data().watch([sources] {
    FarDataCounts sum;
    for (const source::RemoteFiles* each : sources) {
      const source::SourceCounts counts = each->counts();
      sum.reads_near += counts.hits;
      sum.reads_far += counts.misses;
      sum.fetched_bytes += counts.fetched_bytes;
      sum.fetch_seconds += static_cast<double>(counts.fetch_ns) / 1e9;
      sum.kept_bytes = std::max(sum.kept_bytes, counts.cache_bytes);  // it is one cache
    }
    return sum;
  });
}

}  // namespace lockstep
