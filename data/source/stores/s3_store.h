// Objects of a bucket, s3://BUCKET/PREFIX, of Amazon or any server that is compatible with S3.
//
// Thread-safety: as ObjectStore.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "data/source/base/cache_options.h"
#include "data/source/base/object_store.h"

namespace lockstep::source {

// `url` as checked_url(). `stop` outlives it.
std::unique_ptr<ObjectStore> make_s3_store(const std::string& url, const CacheOptions& options,
                                           const std::atomic<bool>& stop);

}  // namespace lockstep::source
