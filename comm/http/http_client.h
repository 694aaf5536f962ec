// Requests over HTTP and HTTPS, with libcurl.
//
// INVARIANTS
//  H1 Every certificate is verified: by the request's own authorities, or by the authorities in
//     SSL_CERT_FILE, AWS_CA_BUNDLE or CURL_CA_BUNDLE, else by the distribution's. The client
//     follows at most limits::kHttpRedirects redirects, none from https to http, and none that
//     leads inside of a network where the named server is not (redirect_rule.h).
//  H2 The client takes no more of an answer than was asked for, and of all headers no more than
//     limits::kHttpAllHeaderBytes.
//  H3 Every request ends: after its `timeout_ms`, or else when it stalls (less than 1 KiB/s for
//     `stall_s`); or it is stopped.
//
// Thread-safety: send() from any thread, several at a time. Connections are used again.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "comm/tls/tls_context.h"

namespace lockstep::http {

enum class Method : uint8_t { kGet, kHead, kPost, kPut, kDelete };

const char* name_of(Method method);  // "GET"

struct HttpRequest {
  Method method = Method::kGet;
  std::string url = {};        // encoded
  std::string_view body = {};  // of a POST or PUT; outlives send()
  std::string range = {};      // "FIRST-LAST"; empty: all
  std::vector<std::string> headers = {};
  std::vector<std::string> keeps = {};  // headers of the answer to keep, in lower case
  uint64_t most_bytes = 0;              // limit of the body of a good answer
  bool follows_redirects = true;
  // HOST:PORT in numbers. Connects there, and through no proxy, whatever host the URL has. Empty:
  // connects as the URL and the environment's proxies say.
  std::string address = {};
  std::shared_ptr<const rpc::TlsContext> tls = {};  // believes these authorities, over TLS 1.3
  int64_t timeout_ms = 0;  // of the whole request; 0: while it does not stall
};

struct HttpAnswer {
  long status = 0;
  bool is_longer = false;       // the body exceeded most_bytes and was cut off
  bool is_encoded = false;      // with a Content-Encoding that was not asked for
  int64_t content_length = -1;  // -1: not said
  std::string etag;
  std::string last_modified;
  std::string content_range;
  std::map<std::string, std::string> kept;  // what `keeps` asked for
  std::string body;                         // also of an error, its beginning
};

class HttpClient {
 public:
  // `stop` outlives it: once set, requests end.
  HttpClient(uint32_t stall_s, const std::atomic<bool>& stop);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Any answer of a server. kUnavailable or kTimeout where there is none, or one that breaks off;
  // kRefused where its certificate is not good, or the answer is no HTTP.
  Result<HttpAnswer> send(const HttpRequest& request);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::http
