#include "comm/rpc/http_server.h"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <chrono>
#include <optional>
#include <set>

#include "comm/rpc/asio_transport.h"
#include "comm/rpc/refusal_log.h"
#include "comm/rpc/socket.h"

namespace lockstep::http {
namespace {

namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using tcp = boost::asio::ip::tcp;
using boost::system::error_code;

// A page of ours takes nothing from elsewhere, runs no script but its own files, and is in no frame.
constexpr char kContentSecurityPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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

// What is answered to a request that never became one.
Response answer_to_error(const error_code& error) {
  if (error == bhttp::error::header_limit || error == bhttp::error::buffer_overflow)
    return {.status = 431, .body = "the request's header is too large\n"};
  if (error == bhttp::error::body_limit)
    return {.status = 413, .body = "a request takes no body here\n"};
  return {.status = 400, .body = "this is no HTTP request\n"};
}

class Session;

}  // namespace

// Outlives the HttpServer while sessions end; `is_over` then keeps them from calling anything.
struct HttpServer::Impl : std::enable_shared_from_this<Impl> {
  Impl(rpc::AsioLoop& the_loop, Options the_options, std::map<std::string, Handler> the_handlers,
       Logger& logger)
      : loop(the_loop),
        options(std::move(the_options)),
        handlers(std::move(the_handlers)),
        acceptor(the_loop.context()) {
    refusals.emplace(the_loop, logger);
  }

  void wait();
  void accept_some();
  Response respond(const bhttp::request<bhttp::string_body>& request) const;
  bool is_allowed_host(std::string_view header) const;

  rpc::AsioLoop& loop;
  Options options;
  std::map<std::string, Handler> handlers;
  std::optional<rpc::RefusalLog> refusals;
  tcp::acceptor acceptor;
  rpc::Address address;
  rpc::TimerId retry_timer = 0;
  bool is_over = false;
  std::set<Session*> sessions;
};

namespace {

// One connection: read a request, answer it, again; at the end take what still comes for a moment,
// so that closing does not reset the connection before the answer was read.
class Session final : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<HttpServer::Impl> server, tcp::socket socket)
      : server_(std::move(server)),
        stream_(std::move(socket)),
        buffer_(limits::kHttpHeaderBytes + limits::kHttpBodyBytes) {
    server_->sessions.insert(this);
  }
  ~Session() { server_->sessions.erase(this); }

  void read() {
    parser_.emplace();
    parser_->header_limit(limits::kHttpHeaderBytes);
    parser_->body_limit(limits::kHttpBodyBytes);
    stream_.expires_after(std::chrono::milliseconds(server_->options.deadline_ms));
    bhttp::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](const error_code& error, size_t) { self->on_read(error); });
  }

  void close() { stream_.close(); }

 private:
  void on_read(const error_code& error) {
    if (server_->is_over) return;
    const bool is_syntax = error.category() == bhttp::make_error_code(bhttp::error{}).category();
    if (error == bhttp::error::end_of_stream || error == bhttp::error::partial_message ||
        (error && !is_syntax))
      return;  // it left, or its time is up
    if (error) return write(answer_to_error(error), 11, false, false);
    const auto& request = parser_->get();
    write(server_->respond(request), request.version(), request.keep_alive(),
          request.method() == bhttp::verb::head);
  }

  void write(Response response, unsigned version, bool keep_alive, bool head_only) {
    auto message = std::make_shared<bhttp::response<bhttp::string_body>>();
    message->result(static_cast<unsigned>(response.status));
    message->version(version);
    message->keep_alive(keep_alive);
    message->set(bhttp::field::content_type, response.content_type);
    message->set(bhttp::field::cache_control, "no-store");
    message->set("X-Content-Type-Options", "nosniff");
    message->set("Content-Security-Policy", kContentSecurityPolicy);
    message->set("Referrer-Policy", "no-referrer");
    message->set("Cross-Origin-Resource-Policy", "same-origin");
    if (response.status == 405) message->set(bhttp::field::allow, "GET, HEAD");
    message->content_length(response.body.size());
    if (!head_only) message->body() = std::move(response.body);
    stream_.expires_after(std::chrono::milliseconds(server_->options.deadline_ms));
    bhttp::async_write(stream_, *message,
                       [self = shared_from_this(), message](const error_code& error, size_t) {
                         if (error || self->server_->is_over) return;
                         if (message->keep_alive()) return self->read();
                         self->linger();
                       });
  }

  void linger() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(std::chrono::milliseconds(limits::kLingerMs));
    discard();
  }

  void discard() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(buffer_.max_size()),
                            [self = shared_from_this()](const error_code& error, size_t) {
                              if (!error) self->discard();
                            });
  }

  std::shared_ptr<HttpServer::Impl> server_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<bhttp::request_parser<bhttp::string_body>> parser_;
};

}  // namespace

bool HttpServer::Impl::is_allowed_host(std::string_view header) const {
  const std::string name = host_name(header);
  return rpc::is_loopback_host(name) ||
         std::find(options.allowed_hosts.begin(), options.allowed_hosts.end(), name) !=
             options.allowed_hosts.end();
}

Response HttpServer::Impl::respond(const bhttp::request<bhttp::string_body>& request) const {
  if (request.count(bhttp::field::host) > 1)
    return {.status = 400, .body = "a request has one Host header\n"};
  if (!is_allowed_host(request[bhttp::field::host]))
    return {.status = 421, .body = "this server does not answer for that Host\n"};
  if (request.method() != bhttp::verb::get && request.method() != bhttp::verb::head)
    return {.status = 405, .body = "only GET and HEAD are served here\n"};
  const std::string_view target = request.target();
  const size_t mark = std::min(target.find('?'), target.size());
  const std::string path(target.substr(0, mark));
  const auto handler = handlers.find(path);
  if (handler == handlers.end()) return {.status = 404, .body = "there is nothing at this path\n"};
  return handler->second({.path = path, .query = target.substr(std::min(mark + 1, target.size()))});
}

void HttpServer::Impl::wait() {
  acceptor.async_wait(tcp::acceptor::wait_read, [self = shared_from_this()](const error_code&) {
    if (!self->is_over) self->accept_some();
  });
}

void HttpServer::Impl::accept_some() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    const int fd = rpc::accept_connection(acceptor.native_handle());
    if (fd < 0 && (errno == ECONNABORTED || errno == EINTR)) continue;
    if (fd < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
      // Out of descriptors or memory: the caller waits in the kernel's queue, we must not spin.
      retry_timer = loop.call_after(limits::kAcceptRetryMs, [this] { wait(); });
      return;
    }
    if (fd < 0) break;
    tcp::socket socket(loop.context(), protocol_of(address), fd);
    if (sessions.size() >= limits::kHttpConnections) {
      refusals->refused(rpc::peer_name(fd), "there are " + std::to_string(sessions.size()) +
                                                " HTTP connections, and that is the limit");
      continue;
    }
    std::make_shared<Session>(shared_from_this(), std::move(socket))->read();
  }
  wait();
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(rpc::AsioLoop& loop, Options options,
                                                      std::map<std::string, Handler> handlers,
                                                      Logger& logger) {
  LOCKSTEP_RETURN_IF_ERROR(rpc::check_loopback(options.address));
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
  for (Session* session : impl_->sessions) session->close();
}

const rpc::Address& HttpServer::address() const {
  return impl_->address;
}

size_t HttpServer::connections() const {
  return impl_->sessions.size();
}

}  // namespace lockstep::http
