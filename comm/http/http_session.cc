// One connection: with TLS a handshake, then requests and answers in turn. At the end it reads the
// remaining input for a moment, so that closing does not reset the connection before the peer has
// read the answer.
#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <type_traits>

#include "comm/http/http_server_impl.h"
#include "comm/net/socket.h"
#include "comm/tls/tls_identity.h"

namespace lockstep::http {
namespace {

// Our pages load nothing from elsewhere, run no script except their own files, and appear in no
// frame.
constexpr char kContentSecurityPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
namespace ssl = boost::asio::ssl;
using tcp = boost::asio::ip::tcp;
using boost::system::error_code;

using Plain = beast::tcp_stream;
using Tls = ssl::stream<beast::tcp_stream>;

// The answer to input that never became a request.
Response answer_to_error(const error_code& error) {
  if (error == bhttp::error::header_limit || error == bhttp::error::buffer_overflow)
    return {.status = 431, .body = "the request's header is too large\n"};
  if (error == bhttp::error::body_limit)
    return {.status = 413, .body = "a request must not have a body\n"};
  return {.status = 400, .body = "this is not an HTTP request\n"};
}

// A caller that gets one of these tried to enter where it may not, or is no client.
bool is_refusal(int status) {
  return status == 400 || status == 401 || status == 413 || status == 421 || status == 431;
}

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

template <typename Stream>
class Session final : public AnySession, public std::enable_shared_from_this<Session<Stream>> {
 public:
  template <typename... Arguments>
  explicit Session(std::shared_ptr<HttpServer::Impl> server, tcp::socket socket,
                   Arguments&... arguments)
      : server_(std::move(server)),
        id_(++server_->last_session),
        peer_(rpc::peer_name(socket.native_handle())),
        stream_(std::move(socket), arguments...),
        buffer_(limits::kHttpHeaderBytes + limits::kHttpBodyBytes) {
    server_->sessions.insert(this);
  }
  ~Session() override {
    be_heard(/*is_proven=*/false);
    server_->sessions.erase(this);
  }

  void start() {
    be_silent();
    if constexpr (std::is_same_v<Stream, Tls>) {
      expires_after(server_->options.deadline_ms);
      stream_.async_handshake(ssl::stream_base::server,
                              [self = this->shared_from_this()](const error_code& error) {
                                if (self->server_->is_over) return;
                                if (error) return self->refused("TLS failed: " + error.message());
                                self->read();
                              });
    } else {
      read();
    }
  }

  void close() override { lowest().close(); }
  const std::string& peer() const override { return peer_; }

 private:
  // While no request is there, the session may have to make room for another.
  void be_silent() {
    server_->silent.add(id_, host_of(peer_), server_->loop.now_ms());
    server_->silent_sessions[id_] = this;
  }
  void be_heard(bool is_proven) {
    server_->silent.remove(id_, is_proven);
    server_->silent_sessions.erase(id_);
  }

  Plain& lowest() { return beast::get_lowest_layer(stream_); }
  void expires_after(int64_t ms) { lowest().expires_after(std::chrono::milliseconds(ms)); }
  void refused(const std::string& why) { server_->refusals->refused(peer_, why); }

  void read() {
    parser_.emplace();
    parser_->header_limit(limits::kHttpHeaderBytes);
    parser_->body_limit(limits::kHttpBodyBytes);
    expires_after(server_->options.deadline_ms);
    bhttp::async_read(stream_, buffer_, *parser_,
                      [self = this->shared_from_this()](const error_code& error, size_t) {
                        self->on_read(error);
                      });
  }

  void on_read(const error_code& error) {
    if (server_->is_over) return;
    // A caller that waits before its next request may do so. One that never brings a whole request
    // is slow on purpose.
    const bool is_in_request = served_ == 0 || parser_->got_some() || buffer_.size() > 0;
    if (error == beast::error::timeout && is_in_request)
      return refused("it sent no complete request within " +
                     std::to_string(server_->options.deadline_ms) + " ms");
    const bool is_syntax = error.category() == bhttp::make_error_code(bhttp::error{}).category();
    if (error == bhttp::error::end_of_stream || error == bhttp::error::partial_message ||
        (error && !is_syntax))
      return;  // the caller left
    ++served_;
    be_heard(/*is_proven=*/!error);
    if (error) return write(answer_to_error(error), 11, false, false);
    const auto& request = parser_->get();
    write(server_->respond(request), request.version(), request.keep_alive(),
          request.method() == bhttp::verb::head);
  }

  void write(Response response, unsigned version, bool keep_alive, bool head_only) {
    if (is_refusal(response.status)) refused(one_line(response.body));
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
    if (response.status == 401) message->set(bhttp::field::www_authenticate, "Bearer");
    message->content_length(response.body.size());
    if (!head_only) message->body() = std::move(response.body);
    expires_after(server_->options.deadline_ms);
    bhttp::async_write(stream_, *message,
                       [self = this->shared_from_this(), message](const error_code& error, size_t) {
                         if (error || self->server_->is_over) return;
                         if (message->keep_alive()) {
                           self->be_silent();
                           return self->read();
                         }
                         self->say_end();
                       });
  }

  void say_end() {
    expires_after(limits::kLingerMs);
    if constexpr (std::is_same_v<Stream, Tls>) {
      stream_.async_shutdown([self = this->shared_from_this()](const error_code&) {});
    } else {
      error_code ignored;
      lowest().socket().shutdown(tcp::socket::shutdown_send, ignored);
      discard();
    }
  }

  void discard() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(buffer_.max_size()),
                            [self = this->shared_from_this()](const error_code& error, size_t) {
                              if (!error) self->discard();
                            });
  }

  std::shared_ptr<HttpServer::Impl> server_;
  const Crowd::Id id_;
  const std::string peer_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<bhttp::request_parser<bhttp::string_body>> parser_;
  uint64_t served_ = 0;  // requests
};

}  // namespace

void start_session(std::shared_ptr<HttpServer::Impl> server, tcp::socket socket) {
  const auto& identity = server->options.tls;
  if (!identity) {
    std::make_shared<Session<Plain>>(std::move(server), std::move(socket))->start();
    return;
  }
  ssl_ctx_st* native = identity->context()->native();
  SSL_CTX_up_ref(native);
  ssl::context context(native);  // the stream holds on to the native context
  std::make_shared<Session<Tls>>(std::move(server), std::move(socket), context)->start();
}

}  // namespace lockstep::http
