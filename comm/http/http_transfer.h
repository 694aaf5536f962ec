// One transfer of libcurl: what it may do, and what comes of it. Internal to HttpClient.
//
// Thread-safety: one thread.
#pragma once

#include <curl/curl.h>

#include <atomic>
#include <cstddef>
#include <optional>

#include "comm/base/limits.h"
#include "comm/base/status.h"
#include "comm/http/http_client.h"
#include "comm/http/redirect_rule.h"

namespace lockstep::http {

struct HttpTransfer {
  const HttpRequest* request = nullptr;
  const std::atomic<bool>* stop = nullptr;
  CURL* curl = nullptr;
  HttpAnswer answer = {};
  std::optional<AddressKind> first = {};  // where the server is that the user named
  Status broken_off = Status::ok();       // why Lockstep ended it, if it did
  size_t header_bytes = 0;                // of all answers
  bool has_header = false;                // the last answer's, whole
};

// Makes libcurl ask `transfer` at each step. kConfig where this libcurl cannot. `transfer` outlives
// the next curl_easy_perform().
Status watch(HttpTransfer& transfer);

}  // namespace lockstep::http
