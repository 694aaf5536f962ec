#include "data/doctor/cold.h"

#include "data/doctor/file_pieces.h"
#include "data/source/far_files/remote_files.h"

namespace lockstep::doctor {

Coldness make_cold(const data::Dataset& dataset, std::span<const uint64_t> samples) {
  if (!dataset.far().empty())
    return {0, "the data are at " + dataset.far().front()->place() +
                   " and come through a cache on this machine; the raw reads measured only what "
                   "the cache holds, and "
                   "the first epoch of a run fetches the rest"};
  const FilePieces pieces(dataset, samples);
  if (pieces.files().empty())
    return {0, "Lockstep does not know which files of this machine hold these samples"};
  pieces.put_out_of_memory();
  const double share = pieces.share_out_of_memory();
  return {share,
          "Lockstep could drop only " + std::to_string(static_cast<int>(share * 100)) +
              " % of the samples' bytes from memory; the other files belong to another owner, were "
              "just written, are in use by other processes, or lie on a file system in memory"};
}

}  // namespace lockstep::doctor
