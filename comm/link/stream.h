// A connection of the data plane: a socket, in the clear or under TLS (comm/tls/tls_socket.h).
//
// Under TLS both ends show a certificate of the run's authority. They do not check whether it is
// for the dialled address, because certificates do not have workers' addresses. Instead the proofs
// of the run's token (handshake.h) cover binding(), so no attacker between the two ends can pass
// them on.
//
// Invariants
//  1. try_*() never wait and never raise SIGPIPE. The TLS handshake is part of the first calls.
//  2. If try_send() has not taken some bytes, the caller offers them again, unchanged and before
//     anything else.
//
// Errors: kRefused if one end does not believe the other, kTimeout, kAborted (cancelled),
// kUnavailable (the peer closed, or the connection broke).
//
// Thread-safety: one thread sends while another receives. Under TLS the two take turns.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <string>

#include "comm/base/status.h"
#include "comm/link/data_socket.h"
#include "comm/tls/tls_socket.h"

namespace lockstep::link {

class Stream {
 public:
  Stream();
  explicit Stream(Descriptor fd);  // in the clear
  // Under TLS; in the clear when `tls` is null.
  static Stream accepted(Descriptor fd, std::shared_ptr<const rpc::TlsContext> tls);
  static Stream called(Descriptor fd, std::shared_ptr<const rpc::TlsContext> tls);
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();

  int fd() const { return fd_.get(); }
  Descriptor release() &&;  // REQUIRES: in the clear

  // Sends some of the bytes of `parts`, one part after the other. At least one part must have
  // bytes.
  rpc::IoResult try_send(const iovec* parts, size_t count);
  rpc::IoResult try_send(const void* data, size_t bytes);
  rpc::IoResult try_receive(void* data, size_t bytes);

  // All bytes.
  Status send(const void* data, size_t bytes, const Deadline& deadline);
  Status receive(void* data, size_t bytes, const Deadline& deadline);

  // Bytes that only the two ends of this connection know; empty in the clear.
  // REQUIRES: a byte was sent or received.
  std::string binding() const;

 private:
  struct Tls;

  Descriptor fd_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace lockstep::link
