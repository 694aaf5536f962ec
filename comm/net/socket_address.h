// An Address in the kernel's form.
//
// Thread-safety: values.
#pragma once

#include <sys/socket.h>

#include "comm/base/status.h"
#include "comm/net/address.h"

namespace lockstep::rpc {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;  // valid bytes of `storage`

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// kConfig for an address that is not in numbers.
Result<SocketAddress> to_socket_address(const Address& address);

}  // namespace lockstep::rpc
