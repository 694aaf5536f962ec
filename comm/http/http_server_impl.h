// The state that the server and its sessions share. Internal.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "comm/http/http_server.h"
#include "comm/rpc/asio_transport.h"
#include "comm/rpc/refusal_log.h"

namespace lockstep::http {

class AnySession {
 public:
  virtual ~AnySession() = default;
  virtual void close() = 0;
};

// It outlives the HttpServer while sessions end. `is_over` then keeps them from calling anything.
struct HttpServer::Impl : std::enable_shared_from_this<Impl> {
  using Request = boost::beast::http::request<boost::beast::http::string_body>;

  Impl(rpc::AsioLoop& the_loop, Options the_options, std::map<std::string, Handler> the_handlers,
       Logger& logger);

  void wait();
  void accept_some();
  Response respond(const Request& request) const;
  bool is_allowed_host(std::string_view header) const;
  bool is_authorized(const Request& request, const std::string& path) const;

  rpc::AsioLoop& loop;
  Options options;
  std::map<std::string, Handler> handlers;
  std::optional<rpc::RefusalLog> refusals;
  boost::asio::ip::tcp::acceptor acceptor;
  rpc::Address address;
  rpc::TimerId retry_timer = 0;
  bool is_over = false;
  std::set<AnySession*> sessions;
};

// Serves one connection (http_session.cc).
void start_session(std::shared_ptr<HttpServer::Impl> server, boost::asio::ip::tcp::socket socket);

}  // namespace lockstep::http
