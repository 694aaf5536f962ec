#include "data/doctor/cold.h"

#include "data/doctor/file_pieces.h"
#include "data/source/view/remote_files.h"

namespace lockstep::doctor {

Coldness make_cold(const data::Dataset& dataset, std::span<const uint64_t> samples) {
  if (!dataset.far().empty())
    return {0, "the data are at " + dataset.far().front()->place() +
                   " and come through a cache on this machine; raw reads are of what it holds, and "
                   "the first epoch of a run fetches the rest"};
  const FilePieces pieces(dataset, samples);
  if (pieces.files().empty()) return {0, "no file of this machine is known to hold these samples"};
  pieces.put_out_of_memory();
  const double share = pieces.share_out_of_memory();
  return {share, "of the samples' bytes only " + std::to_string(static_cast<int>(share * 100)) +
                     " % could be put out of memory (files of another owner or just written, a "
                     "file system in memory, or files that other processes use)"};
}

}  // namespace lockstep::doctor
