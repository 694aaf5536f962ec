// Many members in one process, for the load benchmark: each has a connection of its own to the
// coordinator, proves the token, registers and sends heartbeats, as a worker's session would.
//
//   connect ─▶ register ─▶ joined ⇄ heartbeats ─▶ (connection lost) ─▶ register again: back
//
// A registration is answered, also when it is said again; that answer is the echo by which
// round trips and the end of a burst are measured.
//
// Thread-safety: the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/rpc/asio_transport.h"
#include "comm/rpc/client.h"
#include "comm/wire/control.pb.h"

namespace lockstep::bench {

class LoadMembers {
 public:
  struct Options {
    std::function<Result<rpc::Address>()> address;
    std::string token;
    wire::Register hello;  // of all; pid and local rank are counted up
    uint32_t members = 0;
  };

  LoadMembers(rpc::AsioTransport& transport, Options options);
  ~LoadMembers();

  uint32_t registered() const { return registered_; }  // at present
  // Round trips of registrations since the last call, microseconds.
  std::vector<int64_t> take_round_trips_us();
  uint64_t heartbeats() const { return heartbeats_; }

  // One heartbeat of every member that is registered.
  void beat();
  // `count` heartbeats of every registered member, then an echo; done() says when all are back.
  void burst(uint32_t count);
  bool is_burst_over() const { return echoes_ == 0; }
  // An echo of every n-th member, for latency.
  void probe(uint32_t every);

 private:
  struct Member {
    std::unique_ptr<rpc::RpcClient> client;
    uint64_t id = 0;
    uint64_t term = 0;
    uint64_t generation = 0;
    bool is_registered = false;
    int64_t asked_us = 0;  // 0: no echo is awaited
  };

  void register_member(uint32_t index);
  void on_message(uint32_t index, const wire::Envelope& message);
  void on_lost(uint32_t index);
  void send_heartbeat(Member& member);

  const Options options_;
  std::vector<Member> members_;
  std::vector<int64_t> round_trips_us_;
  uint32_t registered_ = 0;
  uint32_t echoes_ = 0;
  uint64_t heartbeats_ = 0;
};

}  // namespace lockstep::bench
