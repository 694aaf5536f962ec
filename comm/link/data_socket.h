// Sockets of the data plane: abstract Unix sockets and TCP, all non-blocking. They send and receive
// whole messages under a deadline that can be cancelled.
//
// Thread-safety: the functions have no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/descriptors.h"
#include "comm/base/status.h"

namespace lockstep::link {

// A point in time, and a descriptor that becomes readable when the caller wants no answer any more.
struct Deadline {
  int64_t at_ms = 0;   // of SystemClock::monotonic_ms
  int cancel_fd = -1;  // -1: cannot be cancelled

  static Deadline after(int64_t ms, int cancel_fd = -1);
  int64_t left_ms() const;
};

// Waits until `fd` is ready for `events` (of poll()), or is broken. kTimeout, kAborted.
Status wait_until_ready(int fd, short events, const Deadline& deadline);

// Listeners. `name` has no leading zero byte. TCP takes a free port of `host`, a numeric address of
// this machine, and stores the result in *address.
Result<Descriptor> listen_unix(const std::string& name);
Result<Descriptor> listen_tcp(const std::string& host, std::string* address);
// The next waiting connection. Not open if there is none (errno tells why).
Descriptor accept_one(int listener);

// Errors: kUnavailable if no process listens there.
Result<Descriptor> connect_unix(const std::string& name);
Result<Descriptor> connect_tcp(const std::string& address, const Deadline& deadline);

// True if the other end of a Unix socket runs as our user.
bool peer_is_same_user(int fd);
// True if the other end is gone. Reads nothing.
bool has_hung_up(int fd);

// Transfers all bytes, or returns kTimeout, kAborted (cancelled) or kUnavailable (the peer closed).
Status send_all(int fd, const void* data, size_t bytes, const Deadline& deadline);
Status receive_all(int fd, void* data, size_t bytes, const Deadline& deadline);

// The same with descriptors attached; a receiver takes at most `most_fds`.
Status send_with_fds(int fd, const void* data, size_t bytes, const std::vector<int>& fds,
                     const Deadline& deadline);
Status receive_with_fds(int fd, void* data, size_t bytes, size_t most_fds,
                        std::vector<Descriptor>* fds, const Deadline& deadline);

}  // namespace lockstep::link
