#include "comm/http/http_server.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>

#include "comm/base/hash.h"
#include "comm/http/http_server_impl.h"
#include "comm/net/socket.h"
#include "comm/tls/tls_identity.h"

namespace lockstep::http {
namespace {

namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using tcp = boost::asio::ip::tcp;
using boost::system::error_code;

constexpr int kAcceptsPerTurn = 64;  // then others get their turn

tcp protocol_of(const rpc::Address& address) {
  return address.host.find(':') == std::string::npos ? tcp::v4() : tcp::v6();
}

// "Localhost:8080" → "localhost", "[::1]:8080" → "::1".
std::string host_name(std::string_view header) {
  std::string_view name = header.substr(0, header.find(':'));
  if (!header.empty() && header.front() == '[')
    name = header.substr(1, std::max<size_t>(header.find(']'), 1) - 1);
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

// The token of "Bearer TOKEN"; empty if there is none.
std::string_view bearer_of(std::string_view header) {
  constexpr std::string_view kScheme = "bearer ";
  if (header.size() < kScheme.size() || !beast::iequals(header.substr(0, kScheme.size()), kScheme))
    return {};
  return header.substr(kScheme.size());
}

Status check_closed(const HttpServer::Options& options) {
  if (rpc::is_loopback_host(options.address.host)) return Status::ok();
  if (options.tls && !options.token.empty()) return Status::ok();
  return rpc::check_loopback(options.address);
}

}  // namespace

HttpServer::Impl::Impl(rpc::AsioLoop& the_loop, Options the_options,
                       std::map<std::string, Handler> the_handlers, Logger& logger)
    : loop(the_loop),
      options(std::move(the_options)),
      handlers(std::move(the_handlers)),
      acceptor(the_loop.context()) {
  refusals.emplace(the_loop, logger);
}

bool HttpServer::Impl::is_allowed_host(std::string_view header) const {
  const std::string name = host_name(header);
  return rpc::is_loopback_host(name) || name == address.host ||
         std::find(options.allowed_hosts.begin(), options.allowed_hosts.end(), name) !=
             options.allowed_hosts.end() ||
         (options.tls && options.tls->context()->is_for(name));
}

// Probes of a cluster manager carry no secret, and learn one word.
bool HttpServer::Impl::is_authorized(const Request& request, const std::string& path) const {
  if (options.token.empty() || path == "/healthz" || path == "/readyz") return true;
  const std::string_view given = bearer_of(request[bhttp::field::authorization]);
  return options.token
      .find([&](const std::string& token) { return equal_constant_time(given, token); })
      .has_value();
}

Response HttpServer::Impl::respond(const Request& request) const {
  if (request.count(bhttp::field::host) > 1)
    return {.status = 400, .body = "a request must have exactly one Host header\n"};
  if (!is_allowed_host(request[bhttp::field::host]))
    return {.status = 421, .body = "this server does not answer for that Host\n"};
  if (request.method() != bhttp::verb::get && request.method() != bhttp::verb::head)
    return {.status = 405, .body = "only GET and HEAD are served here\n"};
  const std::string_view target = request.target();
  const size_t mark = std::min(target.find('?'), target.size());
  const std::string path(target.substr(0, mark));
  if (!is_authorized(request, path))
    return {.status = 401, .body = "this path needs the token of RUN_DIR/http_token\n"};
  const auto handler = handlers.find(path);
  if (handler == handlers.end()) return {.status = 404, .body = "there is nothing at this path\n"};
  return handler->second({.path = path, .query = target.substr(std::min(mark + 1, target.size()))});
}

void HttpServer::Impl::wait() {
  acceptor.async_wait(tcp::acceptor::wait_read, [self = shared_from_this()](const error_code&) {
    if (!self->is_over) self->accept_some();
  });
}

// A session that has brought no request makes room. False: all are being answered.
bool HttpServer::Impl::make_room() {
  if (silent.empty()) return false;
  const Crowd::Id first = silent.first_to_go();
  silent.remove(first);
  AnySession* const session = silent_sessions.extract(first).mapped();
  refusals->refused(session->peer(), "it had to make room: there are " +
                                         std::to_string(sessions.size()) +
                                         " HTTP connections, and it has sent no request");
  session->close();
  return true;
}

void HttpServer::Impl::accept_some() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    const int fd = rpc::accept_connection(acceptor.native_handle());
    if (fd < 0 && (errno == ECONNABORTED || errno == EINTR)) continue;
    if (fd < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
      // Out of descriptors or memory: the caller waits in the kernel's queue, and we must not spin.
      retry_timer = loop.call_after(limits::kAcceptRetryMs, [this] { wait(); });
      return;
    }
    if (fd < 0) break;
    tcp::socket socket(loop.context(), protocol_of(address), fd);
    if (sessions.size() >= limits::kHttpConnections && !make_room()) {
      refusals->refused(rpc::peer_name(fd), "there are " + std::to_string(sessions.size()) +
                                                " HTTP connections, and that is the limit");
      continue;
    }
    start_session(shared_from_this(), std::move(socket));
  }
  wait();
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(rpc::AsioLoop& loop, Options options,
                                                      std::map<std::string, Handler> handlers,
                                                      Logger& logger) {
  LOCKSTEP_RETURN_IF_ERROR(check_closed(options));
  auto impl = std::make_shared<Impl>(loop, std::move(options), std::move(handlers), logger);
  LOCKSTEP_ASSIGN_OR_RETURN(const int fd,
                            rpc::open_listening_socket(impl->options.address, &impl->address));
  impl->acceptor.assign(protocol_of(impl->address), fd);
  impl->wait();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  impl_->is_over = true;
  impl_->loop.cancel(impl_->retry_timer);
  impl_->refusals.reset();
  error_code ignored;
  impl_->acceptor.close(ignored);
  for (AnySession* session : impl_->sessions) session->close();
}

const rpc::Address& HttpServer::address() const {
  return impl_->address;
}

size_t HttpServer::connections() const {
  return impl_->sessions.size();
}

}  // namespace lockstep::http
