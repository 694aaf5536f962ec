// A BlobStore in a bucket, s3://BUCKET/PREFIX, of Amazon or any server that is compatible with S3
// and can create a key only if it is not there (If-None-Match: *).
//
// Every body goes with its CRC-32C, which the server compares before it keeps it; a server that
// refuses the header as not implemented gets none, once it has said so.
//
// Thread-safety: as BlobStore.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/store/attempts.h"
#include "comm/store/aws_credentials.h"
#include "comm/store/blob_store.h"

namespace lockstep::store {

struct S3Options {
  uint32_t stall_s = 15;  // an attempt fails after so long without data
  RetryOptions retries = {.attempts = 6, .pause_ms = 100};
  AwsCredentials::EnvFn env = {};  // none: the process's
  AwsCredentials::NowFn now = {};
};

// `url` begins with "s3://". `stop` outlives it: once set, calls end with kAborted.
std::unique_ptr<BlobStore> make_s3_blobs(const std::string& url, const S3Options& options,
                                         const std::atomic<bool>& stop);

}  // namespace lockstep::store
