#include "comm/rpc/asio_transport.h"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>

#include "comm/base/clock.h"
#include "comm/base/descriptors.h"
#include "comm/base/limits.h"
#include "comm/net/peer_owner.h"
#include "comm/net/socket.h"
#include "comm/net/socket_address.h"
#include "comm/rpc/asio_connection.h"
#include "comm/rpc/knock.h"
#include "comm/rpc/resolve.h"
#include "comm/rpc/tls_door.h"
#include "comm/tls/tls_identity.h"

namespace lockstep::rpc {
namespace {

using boost::asio::ip::tcp;

constexpr int kAcceptsPerTurn = 64;  // then others get their turn

tcp protocol_of(const Address& address) {
  return address.host.find(':') == std::string::npos ? tcp::v4() : tcp::v6();
}

// The users' handle: dropping it closes the connection, whatever is still in flight.
class ConnectionHandle final : public Connection {
 public:
  ConnectionHandle(AsioLoop& loop, tcp::socket socket, std::unique_ptr<TlsSocket> tls)
      : connection_(std::make_shared<AsioConnection>(loop, std::move(socket), std::move(tls))) {}
  // A handle whose connection has ended already.
  ConnectionHandle(AsioLoop& loop, tcp::socket socket, Status why)
      : connection_(std::make_shared<AsioConnection>(loop, std::move(socket), nullptr)) {
    connection_->end(std::move(why));
  }
  ~ConnectionHandle() override { connection_->close(); }

  void set_handlers(Handlers handlers) override { connection_->set_handlers(std::move(handlers)); }
  void send_shared(wire::SharedFrame frame) override { connection_->send(std::move(frame)); }
  void close() override { connection_->close(); }
  void set_frame_limit(size_t bytes) override { connection_->set_frame_limit(bytes); }
  bool is_open() const override { return connection_->is_open(); }
  size_t queued_bytes() const override { return connection_->queued_bytes(); }
  const std::string& peer() const override { return connection_->peer(); }

 private:
  std::shared_ptr<AsioConnection> connection_;
};

class Acceptor final : public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(AsioLoop& loop, std::shared_ptr<TlsIdentity> tls, Token token, tcp protocol, int fd,
           Transport::AcceptHandler on_accept)
      : loop_(loop),
        tls_(std::move(tls)),
        token_(std::move(token)),
        protocol_(protocol),
        acceptor_(loop.context(), protocol, fd),
        on_accept_(std::make_shared<Transport::AcceptHandler>(std::move(on_accept))) {}

  void open() {
    if (tls_)
      door_ = std::make_shared<TlsDoor>(
          loop_, token_,
          [self = this](tcp::socket socket, Result<TlsDoor::Turn> turn) {
            self->enter(std::move(socket), std::move(turn));
          },
          std::min(limits::kTlsCallers, most_descriptors() / 2));
    wait();
  }

  void wait() {
    acceptor_.async_wait(tcp::acceptor::wait_read,
                         [self = shared_from_this()](const boost::system::error_code&) {
                           if (self->on_accept_) self->accept_some();
                         });
  }

  void close() {
    on_accept_.reset();
    if (door_) door_->close();
    loop_.cancel(retry_timer_);
    boost::system::error_code ignored;
    acceptor_.close(ignored);
  }

 private:
  void accept_some() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      const int fd = accept_connection(acceptor_.native_handle());
      if (fd < 0 && (errno == ECONNABORTED || errno == EINTR)) continue;
      if (fd < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return wait_later();
      if (fd < 0) break;
      tcp::socket socket(loop_.context(), protocol_, fd);
      if (door_) {
        door_->knock(std::move(socket));
      } else {
        tell(std::make_shared<ConnectionHandle>(loop_, std::move(socket), nullptr));
      }
      if (!on_accept_) return;
    }
    wait();
  }

  void enter(tcp::socket socket, Result<TlsDoor::Turn> turn) {
    if (!turn.is_ok())
      return tell(std::make_shared<ConnectionHandle>(loop_, std::move(socket), turn.status()));
    auto tls = TlsSocket::accept(tls_->context(), socket.native_handle());
    tls->hold_until_proven(std::move(turn).value());
    tell(std::make_shared<ConnectionHandle>(loop_, std::move(socket), std::move(tls)));
  }

  // The handler may close the listener.
  void tell(std::shared_ptr<Connection> connection) {
    const auto on_accept = on_accept_;
    (*on_accept)(std::move(connection));
  }

  // Out of descriptors or memory: the caller waits in the kernel's queue, and we must not spin.
  void wait_later() {
    retry_timer_ =
        loop_.call_after(limits::kAcceptRetryMs, [self = shared_from_this()] { self->wait(); });
  }

  AsioLoop& loop_;
  std::shared_ptr<TlsIdentity> tls_;
  const Token token_;
  tcp protocol_;
  tcp::acceptor acceptor_;
  std::shared_ptr<Transport::AcceptHandler> on_accept_;
  std::shared_ptr<TlsDoor> door_;  // null without TLS
  TimerId retry_timer_ = 0;
};

class ListenerHandle final : public Listener {
 public:
  ListenerHandle(std::shared_ptr<Acceptor> acceptor, Address address)
      : acceptor_(std::move(acceptor)), address_(std::move(address)) {}
  ~ListenerHandle() override { acceptor_->close(); }
  const Address& address() const override { return address_; }

 private:
  std::shared_ptr<Acceptor> acceptor_;
  Address address_;
};

// One attempt to connect. The answer or the deadline, whichever comes first, ends it.
class Connecting final : public std::enable_shared_from_this<Connecting> {
 public:
  // `dialled`: the name or address that a certificate must be for.
  Connecting(AsioLoop& loop, std::shared_ptr<TlsIdentity> tls, Token token, const Address& address,
             std::string dialled, int fd, Transport::ConnectHandler on_connected)
      : loop_(loop),
        tls_(std::move(tls)),
        token_(std::move(token)),
        host_(std::move(dialled)),
        name_(to_string(address)),
        socket_(loop.context(), protocol_of(address), fd),
        on_connected_(std::move(on_connected)) {}

  void start(const SocketAddress& where, int64_t timeout_ms) {
    tcp::endpoint endpoint;
    endpoint.resize(where.bytes);
    std::memcpy(endpoint.data(), where.get(), where.bytes);
    timer_ = loop_.call_after(timeout_ms, [self = shared_from_this(), timeout_ms] {
      self->finish(Status(Code::kTimeout, self->name_ + " did not answer within " +
                                              std::to_string(timeout_ms) + " ms"));
    });
    socket_.async_connect(endpoint,
                          [self = shared_from_this()](const boost::system::error_code& error) {
                            self->on_answer(error);
                          });
  }

 private:
  void on_answer(const boost::system::error_code& error) {
    if (!on_connected_) return;
    if (error)
      return finish(Status(
          Code::kUnavailable, "cannot connect to " + name_ + ": " + error.message(),
          error == boost::asio::error::connection_refused ? Obstacle::kPort : Obstacle::kNone));
    if (is_connected_to_itself(socket_.native_handle()))
      return finish(Status(Code::kUnavailable, "nobody listens on " + name_, Obstacle::kPort));
    if (!may_be_our_peer(socket_.native_handle()))
      return finish(Status(Code::kUnavailable,
                           name_ + " belongs to another user of this machine; wait until the run's "
                                   "own coordinator has a port again"));
    if (tls_ && !token_.empty()) knock();
    auto tls = tls_ ? TlsSocket::connect(tls_->context(), socket_.native_handle(), host_) : nullptr;
    if (tls) tls->begin();
    finish(std::shared_ptr<Connection>(
        std::make_shared<ConnectionHandle>(loop_, std::move(socket_), std::move(tls))));
  }

  // A new connection takes so few bytes whole. One that does not will not take TLS either.
  void knock() {
    const std::string knock = make_knock(token_.newest(), SystemClock().wall_ms());
    (void)::send(socket_.native_handle(), knock.data(), knock.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  void finish(Result<std::shared_ptr<Connection>> result) {
    loop_.cancel(timer_);
    boost::system::error_code ignored;
    if (!result.is_ok()) socket_.close(ignored);
    std::exchange(on_connected_, nullptr)(std::move(result));
  }

  AsioLoop& loop_;
  std::shared_ptr<TlsIdentity> tls_;
  const Token token_;
  std::string host_;
  std::string name_;
  tcp::socket socket_;
  Transport::ConnectHandler on_connected_;
  TimerId timer_ = 0;
};

}  // namespace

AsioTransport::AsioTransport(AsioLoop& loop, std::shared_ptr<TlsIdentity> tls, Token token)
    : loop_(loop), tls_(std::move(tls)), token_(std::move(token)) {}

AsioTransport::~AsioTransport() = default;

Result<std::unique_ptr<Listener>> AsioTransport::listen(const Address& address,
                                                        AcceptHandler on_accept) {
  Address real;
  LOCKSTEP_ASSIGN_OR_RETURN(const int fd, open_listening_socket(address, &real));
  auto acceptor =
      std::make_shared<Acceptor>(loop_, tls_, token_, protocol_of(real), fd, std::move(on_accept));
  acceptor->open();
  return std::unique_ptr<Listener>(std::make_unique<ListenerHandle>(std::move(acceptor), real));
}

void AsioTransport::connect(const Address& address, int64_t timeout_ms,
                            ConnectHandler on_connected) {
  if (!numeric_address(address).is_ok())
    return resolve(
        loop_, address, timeout_ms,
        [this, dialled = address.host, timeout_ms, on_connected](const Result<Address>& found) {
          if (!found.is_ok()) return on_connected(found.status());
          dial(*found, dialled, timeout_ms, on_connected);
        });
  dial(address, address.host, timeout_ms, std::move(on_connected));
}

void AsioTransport::dial(const Address& address, const std::string& dialled, int64_t timeout_ms,
                         ConnectHandler on_connected) {
  const auto where = to_socket_address(address);
  const auto fd = open_client_socket(address);
  if (!where.is_ok() || !fd.is_ok()) {
    const Status why = where.is_ok() ? fd.status() : where.status();
    loop_.post([on_connected = std::move(on_connected), why] { on_connected(why); });
    return;
  }
  std::make_shared<Connecting>(loop_, tls_, token_, address, dialled, *fd, std::move(on_connected))
      ->start(*where, timeout_ms);
}

}  // namespace lockstep::rpc
