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
#include "comm/net/crowd.h"
#include "comm/rpc/asio_transport.h"
#include "comm/rpc/refusal_log.h"

namespace lockstep::http {

class AnySession {
 public:
  virtual ~AnySession() = default;
  virtual void close() = 0;
  virtual const std::string& peer() const = 0;
};

// It outlives the HttpServer while sessions end. `is_over` then keeps them from calling anything.
struct HttpServer::Impl : std::enable_shared_from_this<Impl> {
  using Request = boost::beast::http::request<boost::beast::http::string_body>;

  Impl(rpc::AsioLoop& the_loop, Options the_options, std::map<std::string, Handler> the_handlers,
       Logger& logger);

  void wait();
  void accept_some();
  bool make_room();
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
  Crowd silent;  // sessions whose request is not there yet, by their ids
  std::map<Crowd::Id, AnySession*> silent_sessions;
  Crowd::Id last_session = 0;
};

// Serves one connection (http_session.cc).
void start_session(std::shared_ptr<HttpServer::Impl> server, boost::asio::ip::tcp::socket socket);

}  // namespace lockstep::http
