// Resolves a name now, and remembers nothing: a pod that restarts has its old name and another
// address, so every new attempt resolves again.
//
//   loop's thread                          a thread of this lookup
//   resolve() ───────────────────────────▶ getaddrinfo(), which can take a minute without DNS
//   the answer, or the deadline  ◀───────  posts the answer, unless no caller waits any more
//   on_resolved, once
//
// Invariants
//   1. on_resolved runs once, on the loop's thread, and never from inside resolve(). It never runs
//      after the loop is destroyed.
//   2. Neither the deadline nor the end of the loop waits for getaddrinfo(). Its thread ends by
//      itself, and touches nothing of ours then.
//   3. If there are several addresses, it takes the first IPv4, else the first IPv6, as network.h
//      listens.
//
// Thread-safety: resolve() on the loop's thread, or before the loop runs.
#pragma once

#include <cstdint>
#include <functional>

#include "comm/rpc/transport.h"

namespace lockstep::rpc {

using ResolveHandler = std::function<void(Result<Address>)>;

// `address` in numbers. kUnavailable with the resolver's reason, kTimeout after `timeout_ms`.
void resolve(Loop& loop, const Address& address, int64_t timeout_ms, ResolveHandler on_resolved);

}  // namespace lockstep::rpc
