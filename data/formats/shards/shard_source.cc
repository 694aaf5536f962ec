#include "data/formats/shards/shard_source.h"

#include <utility>

#include "data/formats/shards/packed_shards.h"

namespace lockstep::data {

EncodedSource plain_shard_source(const std::string& format, Shards shards,
                                 const ColumnNames& columns, ReadShardFn read,
                                 const ProgressFn& progress,
                                 std::shared_ptr<source::RemoteFiles> far) {
  EncodedSource source;
  source.columns = columns;
  source.far = far;
  shards.far = std::move(far);
  source.format = format;
  source.directory = shards.directory;
  source.shown_directory = shards.shown_directory();
  source.copied = shards.copied;
  source.names = shards.names;
  source.files = shards.names;
  for (const auto& [i, packed] : shards.packed) source.files.push_back(packed.file);
  source.look = [shards = std::move(shards), read = std::move(read), &progress](
                    uint32_t threads, DamagedFiles& damaged) {
    return look_at_shards(shards, read, threads, progress, damaged);
  };
  return source;
}

Result<EncodedSource> shard_source(const std::string& format, Shards shards,
                                   const ReadShardFn& read, const EncodedRequest& request) {
  const ProgressFn& progress = request.progress;
  const ColumnNames& columns = request.columns;
  LOCKSTEP_RETURN_IF_ERROR(check_packed_are_here(shards, request.far.get()));
  EncodedSource source = plain_shard_source(format, shards, columns, read, progress, request.far);
  if (shards.packed.empty()) return source;
  source.inflate = [=, &progress, packed = std::move(shards)](
                       const std::string& cache_dir) -> Result<EncodedSource> {
    LOCKSTEP_ASSIGN_OR_RETURN(Shards plain, inflated_shards(packed, cache_dir, progress));
    return plain_shard_source(format, std::move(plain), columns, read, progress, nullptr);
  };
  return source;
}

}  // namespace lockstep::data
