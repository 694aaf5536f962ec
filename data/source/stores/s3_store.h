// Objects of a bucket, s3://BUCKET/PREFIX, of Amazon or any server that is compatible with S3.
//
// libcurl signs the requests (AWS Signature Version 4). This store adds what the libcurl of Debian
// 12 leaves out, the hash of the content and the session token, and encodes and sorts names and
// queries as they are signed. Without keys requests are not signed, which public buckets accept.
//
// Thread-safety: as ObjectStore.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "data/source/base/cache_options.h"
#include "data/source/base/object_store.h"
#include "data/source/stores/aws_credentials.h"

namespace lockstep::source {

// `url` as checked_url(). `stop` outlives it.
std::unique_ptr<ObjectStore> make_s3_store(const std::string& url, const CacheOptions& options,
                                           const std::atomic<bool>& stop);

}  // namespace lockstep::source
