// The few system calls that Asio would make without close-on-exec: a socket that leaks into a child
// keeps a port or a connection alive after its owner's death. Connections end by themselves when
// the other machine has been silent for half a minute, as a lost machine is.
//
// Thread-safety: free functions without state.
#pragma once

#include <string>

#include "comm/base/status.h"
#include "comm/net/address.h"

namespace lockstep::rpc {

// Listens on an address of this machine and stores the real one. Non-blocking, close-on-exec.
// kConfig, with what to do about it, if the port is taken, or the address is not ours or a wildcard
// for all of ours.
Result<int> open_listening_socket(const Address& address, Address* real);

// An unconnected TCP socket for an address: non-blocking, close-on-exec, TCP_NODELAY.
Result<int> open_client_socket(const Address& address);

// The next waiting connection, non-blocking, close-on-exec, TCP_NODELAY. Else -1 and errno (EAGAIN
// if none waits).
int accept_connection(int listening_fd);

// "127.0.0.1:51234", or "?" if the socket is not connected.
std::string peer_name(int fd);

// True if a socket is connected to itself. TCP allows it when the kernel picks the dialled port as
// the local port. It happens to clients that call a dead server on their own host.
bool is_connected_to_itself(int fd);

}  // namespace lockstep::rpc
