#include "comm/rpc/memory_transport.h"

#include "comm/rpc/memory_pipe.h"

namespace lockstep::rpc {
namespace {

using StatePtr = std::shared_ptr<MemoryNetworkState>;

class MemoryHandle final : public Connection {
 public:
  MemoryHandle(StatePtr network, std::shared_ptr<MemoryEnd> end)
      : network_(std::move(network)), end_(std::move(end)) {}
  ~MemoryHandle() override { end_->close(); }

  void set_handlers(Handlers handlers) override { end_->set_handlers(std::move(handlers)); }
  void send_shared(wire::SharedFrame frame) override { end_->send(frame); }
  void close() override { end_->close(); }
  void set_frame_limit(size_t bytes) override { end_->set_frame_limit(bytes); }
  bool is_open() const override { return end_->is_open(); }
  size_t queued_bytes() const override { return end_->queued_bytes(); }
  const std::string& peer() const override { return end_->peer(); }

 private:
  StatePtr network_;
  std::shared_ptr<MemoryEnd> end_;
};

class MemoryListener final : public Listener {
 public:
  using Handler = std::shared_ptr<Transport::AcceptHandler>;

  MemoryListener(StatePtr network, Address address, Handler handler)
      : network_(std::move(network)), address_(std::move(address)), handler_(std::move(handler)) {}
  // After a crash of our node the door may already belong to another one.
  ~MemoryListener() override {
    const auto door = network_->doors.find(to_string(address_));
    if (door != network_->doors.end() && door->second.on_accept == handler_)
      network_->doors.erase(door);
  }
  const Address& address() const override { return address_; }

 private:
  StatePtr network_;
  Address address_;
  Handler handler_;
};

// Reaches the listener's node: makes a pipe if a program listens there now.
Result<std::shared_ptr<MemoryEnd>> knock(const StatePtr& network, const std::string& from,
                                         const Address& address) {
  const auto door = network->doors.find(to_string(address));
  if (door == network->doors.end())
    return Status(Code::kUnavailable,
                  "cannot connect to " + to_string(address) + ": Connection refused",
                  Obstacle::kPort);
  auto [near, far] = network->make_pipe(from, door->second.node, address);
  const auto on_accept = door->second.on_accept;
  (*on_accept)(std::make_shared<MemoryHandle>(network, far));
  return near;
}

}  // namespace

MemoryNetwork::MemoryNetwork(SimLoop& loop) : state_(std::make_shared<MemoryNetworkState>(loop)) {}

MemoryNetwork::~MemoryNetwork() {
  for (const auto& end : state_->ends) end->vanish(/*deliver=*/false);
  state_->ends.clear();
  state_->doors.clear();
  state_->knocks.clear();
}

std::unique_ptr<MemoryTransport> MemoryNetwork::transport(std::string node) {
  return std::make_unique<MemoryTransport>(state_, std::move(node));
}

std::unique_ptr<MemoryTransport> MemoryNetwork::transport(std::string node, Loop& loop) {
  state_->loops[node] = &loop;
  return transport(std::move(node));
}

void MemoryNetwork::set_delays(Delays delays) {
  state_->delays = std::move(delays);
}

void MemoryNetwork::set_tap(Tap tap) {
  state_->tap = std::move(tap);
}

void MemoryNetwork::set_delay(const std::string& a, const std::string& b, int64_t delay_ms) {
  state_->delays_ms[MemoryNetworkState::pair_of(a, b)] = delay_ms;
}

void MemoryNetwork::partition(const std::string& a, const std::string& b) {
  partition_one_way(a, b);
  partition_one_way(b, a);
}

void MemoryNetwork::partition_one_way(const std::string& from, const std::string& to) {
  state_->partitions.emplace(from, to);
}

void MemoryNetwork::heal(const std::string& a, const std::string& b) {
  state_->partitions.erase({a, b});
  state_->partitions.erase({b, a});
  for (const auto& end : state_->ends)
    if (MemoryNetworkState::pair_of(end->node(), end->other_node()) ==
        MemoryNetworkState::pair_of(a, b))
      end->schedule_pump(0);
}

size_t MemoryNetwork::cut(const std::string& a, const std::string& b) {
  size_t open_ends = 0;
  for (const auto& end : state_->ends) {
    if (MemoryNetworkState::pair_of(end->node(), end->other_node()) !=
        MemoryNetworkState::pair_of(a, b))
      continue;
    open_ends += end->is_open() ? 1 : 0;
    end->end(Status(Code::kUnavailable, "the connection broke: Connection reset by peer"));
  }
  return open_ends / 2;
}

size_t MemoryNetwork::crash(const std::string& node) {
  return drop(node, /*deliver=*/false);
}

size_t MemoryNetwork::exit(const std::string& node) {
  return drop(node, /*deliver=*/true);
}

size_t MemoryNetwork::drop(const std::string& node, bool deliver) {
  size_t connections = 0;
  for (const auto& end : state_->ends) {
    if (end->node() == node) {
      connections += end->is_open() ? 1 : 0;
      end->vanish(deliver);
    } else if (end->other_node() == node && !deliver) {
      end->end(Status(Code::kUnavailable, "the connection broke: Connection reset by peer"));
    }
  }
  // The kernel of a process that has ended resets what it had not accepted.
  for (const auto& [id, knock] : state_->knocks) {
    if (knock.to != node || state_->is_partitioned(node, knock.from)) continue;
    state_->loop_of(knock.from)
        .call_after(state_->delay_ms(node, knock.from), [refuse = knock.refuse] {
          refuse(Status(Code::kUnavailable, "the connection broke: Connection reset by peer"));
        });
  }
  std::erase_if(state_->knocks, [&](const auto& item) {
    return item.second.to == node || item.second.from == node;
  });
  std::erase_if(state_->doors, [&](const auto& door) { return door.second.node == node; });
  state_->loops.erase(node);
  return connections;
}

MemoryTransport::MemoryTransport(std::shared_ptr<MemoryNetworkState> state, std::string node)
    : state_(std::move(state)), node_(std::move(node)) {}

Loop& MemoryTransport::loop() {
  return state_->loop_of(node_);
}

Result<std::unique_ptr<Listener>> MemoryTransport::listen(const Address& address,
                                                          AcceptHandler on_accept) {
  Address real = address;
  if (real.port == 0) real.port = ++state_->last_port;
  auto handler = std::make_shared<AcceptHandler>(std::move(on_accept));
  if (!state_->doors.emplace(to_string(real), MemoryNetworkState::Door{node_, handler}).second)
    return Status(Code::kConfig, "cannot listen on " + to_string(real) + ": the port is taken");
  return std::unique_ptr<Listener>(
      std::make_unique<MemoryListener>(state_, real, std::move(handler)));
}

// The listener accepts half-way, and the other half brings the answer. A partition anywhere on the
// way ends in the timeout.
void MemoryTransport::connect(const Address& address, int64_t timeout_ms,
                              ConnectHandler on_connected) {
  auto handler = std::make_shared<ConnectHandler>(std::move(on_connected));
  auto finish = [handler](Result<std::shared_ptr<Connection>> result) {
    if (*handler) std::exchange(*handler, nullptr)(std::move(result));
  };
  const auto door = state_->doors.find(to_string(address));
  const std::string to = door == state_->doors.end() ? address.host : door->second.node;
  Loop& own = state_->loop_of(node_);
  const uint64_t id = ++state_->last_knock;
  const TimerId timer = own.call_after(timeout_ms, [=, network = state_] {
    network->knocks.erase(id);
    finish(Status(Code::kTimeout, to_string(address) + " did not answer within " +
                                      std::to_string(timeout_ms) + " ms"));
  });
  // A node that has ended has the network's loop, on which this number is another's timer.
  const auto cancel = [network = state_, from = node_, own = &own, timer] {
    if (&network->loop_of(from) == own) own->cancel(timer);
  };
  state_->knocks[id] = {node_, to, [=](const Status& why) {
                          cancel();
                          finish(why);
                        }};
  const auto knock_there = [=, network = state_, from = node_] {
    network->knocks.erase(id);
    if (!*handler || network->is_partitioned(from, to)) return;
    auto end = knock(network, from, address);
    network->loop_of(from).call_after(network->delay_ms(to, from), [=] {
      if (!*handler || network->is_partitioned(to, from)) {
        if (end.is_ok()) end.value()->close();
        return;
      }
      cancel();
      if (!end.is_ok()) return finish(end.status());
      finish(std::shared_ptr<Connection>(std::make_shared<MemoryHandle>(network, end.value())));
    });
  };
  state_->loop_of(to).call_after(state_->delay_ms(node_, to), knock_there);
}

}  // namespace lockstep::rpc
