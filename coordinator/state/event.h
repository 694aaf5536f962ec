// Everything that can happen to the coordinator. A message from the network becomes one of these,
// with the fence values of its envelope; the adapter adds nothing and decides nothing.
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

// Time passed; deadlines are judged here only.
struct Tick {};

// A signal to the coordinator: checkpoint at the next agreed boundary, then end with 75.
struct StopSignal {
  std::string why;
};

using Event = std::variant<MessageReceived, ConnectionClosed, Tick, StopSignal>;

}  // namespace lockstep::coordinator
