// Everything that can happen to the coordinator. The adapter turns a message from the network into
// one of these events, with the fence values of its envelope. It adds nothing and decides nothing.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "comm/base/ids.h"
#include "comm/wire/control.pb.h"

namespace lockstep::coordinator {

using ConnectionId = uint64_t;  // given by the adapter, never used twice; 0 = none

// An authenticated peer sent this. Only decide() judges term, generation and sender.
struct MessageReceived {
  ConnectionId connection = 0;
  wire::Envelope envelope;
};

struct ConnectionClosed {
  ConnectionId connection = 0;
  std::string why;
};

// Time passed. decide() judges deadlines only at a tick.
struct Tick {};

// The answer to ReadManifest (action.h).
struct ManifestRead {
  std::string name;    // of the checkpoint
  std::string sha256;  // of its manifest, as the coordinator sees it; empty: see `error`
  std::string error;
};

// The coordinator got a signal: checkpoint at the next agreed boundary, then end with 75.
struct StopSignal {
  std::string why;
};

using Event = std::variant<MessageReceived, ConnectionClosed, Tick, ManifestRead, StopSignal>;

}  // namespace lockstep::coordinator
