// An Address as the kernel wants it.
// Thread-safety: values.
#pragma once

#include <sys/socket.h>

#include "comm/base/status.h"
#include "comm/net/address.h"

namespace lockstep::rpc {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;  // valid ones of `storage`

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// kConfig for one that is not in numbers.
Result<SocketAddress> to_socket_address(const Address& address);

}  // namespace lockstep::rpc
