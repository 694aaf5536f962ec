// A small HTTP/1.1 server for /metrics, /healthz, the JSON API and the status page. It serves GET
// and HEAD of fixed paths, and makes answers on the loop's thread. On loopback it serves every
// caller in the clear. Beyond loopback it serves over TLS 1.3, with our certificate alone, to
// callers that show a token.
//
// Thread-safety: everything on the loop's thread, or before the loop runs.
//
// Invariants:
//  1. A handler runs only for a known path, GET or HEAD, and an allowed Host header. The Host check
//     keeps out web pages that rebind their name to 127.0.0.1. The server answers everything else
//     itself (404, 405 with Allow, 421), and it does no harm.
//  2. A connection has at most limits::kHttpDeadlineMs to bring a whole request, as long to take
//     the answer, and one request at a time. There are at most limits::kHttpConnections. One more
//     displaces one that has brought no request (crowd.h).
//  3. Handlers never run after the destructor began.
//  4. With a token, the server answers 401 to a request without it, except for /healthz and
//     /readyz, which say one word each. Beyond loopback there is no server without TLS and a token.
//  5. A refused caller, or one that brings no whole request in time, gets a line in the log
//     (refusal_log.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/limits.h"
#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/net/address.h"
#include "comm/tls/run_token.h"

namespace lockstep::rpc {
class AsioLoop;
class TlsIdentity;
}  // namespace lockstep::rpc

namespace lockstep::http {

struct Request {
  std::string_view path;   // without the query
  std::string_view query;  // after '?', as sent
};

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

using Handler = std::function<Response(const Request&)>;

class HttpServer {
 public:
  struct Options {
    rpc::Address address{"127.0.0.1", 0};
    // Names that a Host header may have, besides the names of loopback, the address itself and,
    // with TLS, the names of the certificate.
    std::vector<std::string> allowed_hosts = {};
    std::shared_ptr<rpc::TlsIdentity> tls = {};  // null: in the clear
    rpc::Token token = {};                       // empty: no caller needs one
    int64_t deadline_ms = limits::kHttpDeadlineMs;
  };

  // kConfig if the port is taken or the address is forbidden, with what to do about it.
  static Result<std::unique_ptr<HttpServer>> start(rpc::AsioLoop& loop, Options options,
                                                   std::map<std::string, Handler> handlers,
                                                   Logger& logger);
  ~HttpServer();

  const rpc::Address& address() const;  // with the real port
  size_t connections() const;

  struct Impl;

 private:
  explicit HttpServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace lockstep::http
