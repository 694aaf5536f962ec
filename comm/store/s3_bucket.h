// A bucket of Amazon or of any server that is compatible with S3: where it is, who asks it, and
// what its refusals mean. Those who read data from it and those who keep a run's state in it ask
// here.
//
// Without keys requests are not signed, which public buckets accept.
//
// Thread-safety: all calls from any thread, several at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "comm/http/http_client.h"
#include "comm/store/aws_credentials.h"
#include "comm/store/s3_answers.h"

namespace lockstep::store {

struct BucketPlace {
  std::string bucket;
  std::string prefix;  // of keys; without slashes at its ends
};

// The parts of "s3://BUCKET/PREFIX". REQUIRES: `url` begins with "s3://".
BucketPlace parse_s3_url(std::string_view url);

class S3Bucket {
 public:
  // `stop` outlives it: once set, requests end. `stall_s`: a request fails after so long without
  // data. `env`, `now`: as AwsCredentials takes them.
  S3Bucket(std::string bucket, uint32_t stall_s, const std::atomic<bool>& stop,
           AwsCredentials::EnvFn env = {}, AwsCredentials::NowFn now = {});

  // Any answer of the server to `request`, whose URL and signature are set here. Asks once more
  // where it refuses keys and there are newer ones. Errors as HttpClient's, and those of keys();
  // kConfig for an endpoint that is no address.
  Result<http::HttpAnswer> send(http::HttpRequest request, const std::string& key,
                                const Query& query = {});

  // The error of an answer, as error_of(), with what to do where keys, clock or region are wrong.
  Status error_in(const http::HttpAnswer& answer);

  // Tries to get a page until it is there, or for good in vain.
  using AgainFn = std::function<Status(const std::function<Status()>& try_it)>;
  // All objects whose keys begin with `prefix`. `place` is what messages call them.
  Result<std::vector<Blob>> list(const std::string& prefix, const std::string& place,
                                 const AgainFn& again);

 private:
  Status with_advice(const Status& refused);
  std::string url_of(const std::string& key, const Query& query) const;
  Result<http::HttpAnswer> send_with(const AwsKeys& keys, http::HttpRequest request);

  const std::string bucket_;
  AwsCredentials credentials_;
  http::HttpClient client_;
  std::string region_;
  std::string base_;  // of URLs, with a slash at its end
  Status trouble_;    // why nothing can be asked
};

}  // namespace lockstep::store
