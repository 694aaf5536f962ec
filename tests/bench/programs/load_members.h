// Many members in one process, for the load benchmark. Each has a connection of its own to the
// coordinator, proves the token, registers and sends heartbeats, as a worker's session does.
//
//   connect ─▶ register ─▶ joined ⇄ heartbeats ─▶ (connection lost) ─▶ register again: back
//                            └▶ prepare, start ─▶ records of `train_steps` steps ─▶ reported
//
// Members compute nothing. Their records are as large as a worker's. The coordinator answers every
// registration, also a repeated one. The benchmark uses this answer as an echo: it measures round
// trips and the end of a burst.
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
    wire::Register hello;  // of all members; pid and local rank count up
    uint32_t members = 0;
    uint32_t train_steps = 0;  // to report after a generation's start
    uint32_t batch_steps = 0;  // in each batch of records; at most limits::kRecordBatchSteps
    uint32_t slots = 0;        // of the run, as many as its global batch has samples
  };

  LoadMembers(rpc::AsioTransport& transport, Options options);
  ~LoadMembers();

  uint32_t registered() const { return registered_; }  // at present
  // Round trips of registrations since the last call, in microseconds.
  std::vector<int64_t> take_round_trips_us();
  uint64_t heartbeats() const { return heartbeats_; }
  uint32_t reported() const { return reported_; }  // members whose records are all acknowledged
  uint64_t record_bytes() const { return record_bytes_; }  // bytes of sent messages with records

  // One heartbeat of every registered member.
  void beat();
  // `count` heartbeats of every registered member, then an echo. done() tells when all are back.
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
    int64_t asked_us = 0;  // 0: awaits no echo
    uint32_t steps_told = 0;
    uint64_t batch = 0;  // number of the last sent batch
  };

  void register_member(uint32_t index);
  void on_message(uint32_t index, const wire::Envelope& message);
  void on_lost(uint32_t index);
  void send_heartbeat(Member& member);
  void send_promise(Member& member, uint64_t generation);
  void send_records(Member& member);

  const Options options_;
  std::vector<Member> members_;
  std::vector<int64_t> round_trips_us_;
  uint32_t registered_ = 0;
  uint32_t echoes_ = 0;
  uint64_t heartbeats_ = 0;
  uint32_t reported_ = 0;
  uint64_t record_bytes_ = 0;
};

}  // namespace lockstep::bench
