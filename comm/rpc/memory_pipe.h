// One end of a connection in memory, and the network that holds all ends. Internal.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/rpc/sim_loop.h"
#include "comm/rpc/transport.h"

namespace lockstep::rpc {

struct MemoryNetworkState;

// The outbox holds sent frames until the other end has taken them.
class MemoryEnd final : public std::enable_shared_from_this<MemoryEnd> {
 public:
  MemoryEnd(MemoryNetworkState& network, std::string node, std::string other_node,
            std::string peer);

  void set_handlers(Connection::Handlers handlers);
  void send(const wire::SharedFrame& frame);
  void close();
  void set_frame_limit(size_t bytes) { decoder_.set_limit(bytes); }
  bool is_open() const { return is_open_; }
  size_t queued_bytes() const { return queued_bytes_; }
  const std::string& peer() const { return peer_; }

  // Ends the connection at this end, and tells the handlers.
  void end(Status why);
  // The process of this end is gone and hears nothing. Its sent frames arrive if `deliver`.
  void vanish(bool deliver);
  // Moves due frames to the other end.
  void pump();
  // Calls pump() in an event of the other end's loop.
  void schedule_pump(int64_t delay_ms);

  bool is_done() const { return !is_open_ && outbox_.empty(); }
  const std::string& node() const { return node_; }
  const std::string& other_node() const { return other_node_; }
  void join(const std::shared_ptr<MemoryEnd>& other) { other_ = other; }

 private:
  struct Chunk {
    int64_t due_ms;
    std::string bytes;  // empty: the end of the stream
  };

  void put(std::string bytes);
  void take(std::string_view bytes);
  void post_end();
  void report_end();

  MemoryNetworkState& network_;
  std::string node_;
  std::string other_node_;
  std::string peer_;
  std::weak_ptr<MemoryEnd> other_;
  bool is_open_ = true;
  bool has_sent_ = false;
  std::shared_ptr<Connection::Handlers> handlers_;
  std::optional<Status> unreported_;
  wire::FrameDecoder decoder_;
  std::deque<Chunk> outbox_;
  size_t queued_bytes_ = 0;
};

struct MemoryNetworkState {
  using NodePair = std::pair<std::string, std::string>;
  struct Door {
    std::string node;
    std::shared_ptr<Transport::AcceptHandler> on_accept;
  };

  // A connect on its way to a listener that has not accepted it yet.
  struct Knock {
    std::string from;
    std::string to;
    std::function<void(const Status&)> refuse;  // called on the loop of `from`
  };

  explicit MemoryNetworkState(SimLoop& sim_loop) : loop(sim_loop) {}

  static NodePair pair_of(const std::string& a, const std::string& b) {
    return a < b ? NodePair(a, b) : NodePair(b, a);
  }
  int64_t delay_ms(const std::string& a, const std::string& b) const {
    if (delays) return delays(a, b);
    const auto found = delays_ms.find(pair_of(a, b));
    return found == delays_ms.end() ? 0 : found->second;
  }
  bool is_partitioned(const std::string& from, const std::string& to) const {
    return partitions.count(NodePair(from, to)) != 0;
  }
  Loop& loop_of(const std::string& node) const {
    const auto found = loops.find(node);
    return found == loops.end() ? loop : *found->second;
  }
  // Two joined ends; the first is the caller's.
  std::pair<std::shared_ptr<MemoryEnd>, std::shared_ptr<MemoryEnd>> make_pipe(
      const std::string& from, const std::string& to, const Address& address);

  SimLoop& loop;
  std::map<std::string, Loop*> loops;  // of nodes that have their own
  std::map<NodePair, int64_t> delays_ms;
  std::function<int64_t(const std::string& from, const std::string& to)> delays;
  std::function<void(const std::string& from, const std::string& to, const wire::Frame&)> tap;
  std::set<NodePair> partitions;      // from, to
  std::map<std::string, Door> doors;  // by address as text
  std::vector<std::shared_ptr<MemoryEnd>> ends;
  std::map<uint64_t, Knock> knocks;
  uint64_t last_knock = 0;
  uint16_t last_port = 40'000;
};

}  // namespace lockstep::rpc
