// Signs requests as Amazon's services ask: AWS Signature Version 4, in headers.
//
// Source: AWS General Reference, "Create a signed AWS API request". libcurl's own
// (CURLOPT_AWS_SIGV4 of 7.88) does not sort queries and signs headers that are not sent.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/http/http_client.h"
#include "comm/store/aws_credentials.h"

namespace lockstep::store {

struct Signer {
  AwsKeys keys;
  std::string region;
  std::string service = "s3";
  int64_t now_s = 0;  // since 1970
};

// Adds the headers that sign `request`: the time, the hash of its body, the session's token, and
// the signature over these, the host, and each "x-amz-" header that it has. A body that goes over
// TLS is not hashed: TLS keeps it, and S3 checks its CRC. REQUIRES: the query of the URL is encoded
// and sorted.
void sign(http::HttpRequest& request, const Signer& signer);

}  // namespace lockstep::store
