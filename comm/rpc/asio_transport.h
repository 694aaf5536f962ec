// The Transport of production: Boost.Asio over TCP.
//
// Thread-safety: as in transport.h. Sockets are close-on-exec and have TCP_NODELAY.
#pragma once

#include <memory>

#include "comm/rpc/asio_loop.h"
#include "comm/rpc/transport.h"
#include "comm/tls/run_token.h"

namespace lockstep::rpc {

class TlsIdentity;

class AsioTransport final : public Transport {
 public:
  // With `tls` every connection is mutual TLS (tls_socket.h). The caller checks the listener's
  // certificate against the host of the dialled address. A listener reports a caller when TLS
  // begins (tls_door.h). Null: in the clear. `token`: with `tls`, callers show that they have it
  // before the handshake, and are served first (knock.h); empty: they do not.
  explicit AsioTransport(AsioLoop& loop, std::shared_ptr<TlsIdentity> tls = nullptr,
                         Token token = {});
  ~AsioTransport() override;

  Loop& loop() override { return loop_; }
  Result<std::unique_ptr<Listener>> listen(const Address& address,
                                           AcceptHandler on_accept) override;
  void connect(const Address& address, int64_t timeout_ms, ConnectHandler on_connected) override;

 private:
  // `address` in numbers, `dialled` as the caller gave it.
  void dial(const Address& address, const std::string& dialled, int64_t timeout_ms,
            ConnectHandler on_connected);

  AsioLoop& loop_;
  std::shared_ptr<TlsIdentity> tls_;
  const Token token_;
};

}  // namespace lockstep::rpc
