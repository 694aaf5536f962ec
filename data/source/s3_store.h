// Objects of a bucket, s3://BUCKET/PREFIX, of Amazon or any server that speaks as S3 does.
//
// Requests are signed by libcurl (AWS Signature Version 4). Of what it leaves out of them in the
// version that we have, the hash of the content and the session token are added here; names and
// queries are encoded and sorted here, as they are signed. Where there are no keys, requests are
// not signed, which buckets for everybody take.
//
// Thread-safety: as ObjectStore.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "data/source/aws_credentials.h"
#include "data/source/cache_options.h"
#include "data/source/object_store.h"

namespace lockstep::source {

// `url` as checked_url(). `stop` outlives it.
std::unique_ptr<ObjectStore> make_s3_store(const std::string& url, const CacheOptions& options,
                                           const std::atomic<bool>& stop);

}  // namespace lockstep::source
