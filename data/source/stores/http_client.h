// Requests over HTTP and HTTPS, with libcurl.
//
// INVARIANTS
//  H1 Every certificate is verified, by the authorities of SSL_CERT_FILE, AWS_CA_BUNDLE or
//     CURL_CA_BUNDLE, else those of this machine's distribution. The client follows at most
//     limits::kHttpRedirects redirects, none from https to http, and none that leads inside of a
//     network where the named server is not (redirect_rule.h).
//  H2 The client takes no more of an answer than was asked for.
//  H3 Every request ends: it fails when it stalls (less than 1 KiB/s for `stall_s`), or is stopped.
//
// Thread-safety: send() from any thread, several at a time. Connections are used again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::source {

struct HttpRequest {
  std::string url;  // encoded
  bool is_head = false;
  std::string range;  // "FIRST-LAST"; empty: all
  std::vector<std::string> headers;
  uint64_t most_bytes = 0;  // limit of the body of a good answer
  bool follows_redirects = true;
  std::string sign;    // as CURLOPT_AWS_SIGV4; empty: not signed
  std::string key_id;  // to sign with
  std::string secret;
};

struct HttpAnswer {
  long status = 0;
  bool is_longer = false;       // the body exceeded most_bytes and was cut off
  bool is_encoded = false;      // with a Content-Encoding that was not asked for
  int64_t content_length = -1;  // -1: not said
  std::string etag;
  std::string last_modified;
  std::string content_range;
  std::vector<uint8_t> body;  // also of an error, its beginning
};

class HttpClient {
 public:
  // `stop` outlives it: once set, requests end.
  HttpClient(uint32_t stall_s, const std::atomic<bool>& stop);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Any answer of a server. kUnavailable or kTimeout where there is none, or one that breaks off;
  // kRefused where its certificate is not good.
  Result<HttpAnswer> send(const HttpRequest& request);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::source
