// A network in memory under a virtual clock, for tests and the simulator. The same calls give the
// same order of events in every run. The test decides what the network does to them.
//
// Thread-safety: one thread.
//
// Invariants, in addition to the ones of transport.h:
//  1. Events run in the order of (time, number of scheduling). Time passes only between events.
//  2. A frame takes the delay that the link has at the time of send(). Frames of one connection
//     never overtake each other, whatever the later delays.
//  3. Frames pass through the real encoder and decoder, so limits and errors are the same as over
//     TCP.
//  4. A node's handlers run on the node's own loop. While that loop holds its events back, as a
//     stopped process does, frames wait as in a socket.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/rpc/sim_loop.h"
#include "comm/rpc/transport.h"

namespace lockstep::rpc {

class MemoryTransport;
struct MemoryNetworkState;

// All hosts of one test. Host names in addresses are free. A port belongs to its host.
// REQUIRES: the loop outlives the network.
class MemoryNetwork {
 public:
  explicit MemoryNetwork(SimLoop& loop);
  ~MemoryNetwork();
  MemoryNetwork(const MemoryNetwork&) = delete;
  MemoryNetwork& operator=(const MemoryNetwork&) = delete;

  // A transport whose connections come from `node` (a name for faults and for peer()).
  std::unique_ptr<MemoryTransport> transport(std::string node);
  // The same on a loop of the node's own. The loop lives until crash() or exit() of the node.
  std::unique_ptr<MemoryTransport> transport(std::string node, Loop& loop);

  // Called for every frame and every half of a connect, instead of set_delay().
  using Delays = std::function<int64_t(const std::string& from, const std::string& to)>;
  void set_delays(Delays delays);
  // Sees every frame when it is sent.
  using Tap =
      std::function<void(const std::string& from, const std::string& to, const wire::Frame&)>;
  void set_tap(Tap tap);

  // From now on frames and connects between the two nodes take `delay_ms` each way.
  void set_delay(const std::string& a, const std::string& b, int64_t delay_ms);
  // Until heal(), frames between the two wait, as in TCP, and connects time out. Neither of them
  // hears of it.
  void partition(const std::string& a, const std::string& b);
  // The same for one direction only.
  void partition_one_way(const std::string& from, const std::string& to);
  void heal(const std::string& a, const std::string& b);
  // Resets every connection between the two now: both sides get on_close, frames in flight are
  // lost. Returns the number of connections.
  size_t cut(const std::string& a, const std::string& b);
  // Resets every connection and drops every listener of a node, as the loss of a machine does. Its
  // peers get on_close, frames in flight are lost, and the node itself gets no more callbacks.
  size_t crash(const std::string& node);
  // The same as a kill -9 does it: sent frames still arrive, before on_close.
  size_t exit(const std::string& node);

 private:
  size_t drop(const std::string& node, bool deliver);

  std::shared_ptr<MemoryNetworkState> state_;
};

class MemoryTransport final : public Transport {
 public:
  MemoryTransport(std::shared_ptr<MemoryNetworkState> state, std::string node);
  Loop& loop() override;
  Result<std::unique_ptr<Listener>> listen(const Address& address,
                                           AcceptHandler on_accept) override;
  void connect(const Address& address, int64_t timeout_ms, ConnectHandler on_connected) override;

 private:
  std::shared_ptr<MemoryNetworkState> state_;
  std::string node_;
};

}  // namespace lockstep::rpc
