// Sends a report to Kubeflow Trainer's status server, without blocking the loop.
//
//   loop's thread                                   a thread of this report
//   send() ─▶ resolve the name (rpc/resolve.h) ───▶ read token and certificates, POST
//   done(status) ◀──────────────────────────────── posts the outcome
//
// Invariants
//   1. Every report reads the files again, because the kubelet replaces both during a run. Unlike
//      for Lockstep's own secrets, the sender does not check their permissions: the kubelet mounts
//      them as links to files that a group can read, and no other user is in the pod.
//   2. The token goes over TLS to a server that proves to be the host of the URL, or stays on this
//      machine. A redirect is a failure.
//   3. Except for reading the two files, nothing takes longer than the report's timeout.
//
// Thread-safety: the loop's thread; send_report() any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "comm/base/byte_units.h"
#include "comm/base/status.h"
#include "comm/rpc/transport.h"
#include "coordinator/trainer_status/target.h"

namespace lockstep::trainer {

inline constexpr size_t kTokenBytes = 16 * kKib;
inline constexpr size_t kAnswerBytes = 64 * kKib;  // the answer repeats the report, or is a Status

// Blocks. `where`: the target's address in numbers. kConfig and kNoInput for unusable files.
// kRefused if the server refuses the report or does not prove its name. Else the errors of
// http_post(). All messages say what to do.
Status send_report(const Target& target, const rpc::Address& where, const std::string& body,
                   int64_t timeout_ms);

class HttpSender {
 public:
  HttpSender(rpc::Loop& loop, Target target) : loop_(loop), target_(std::move(target)) {}
  // Waits for a report under way, at most for its timeout, and does not call its `done` any more.
  ~HttpSender();
  HttpSender(const HttpSender&) = delete;
  HttpSender& operator=(const HttpSender&) = delete;

  // Calls `done` once, on the loop's thread, never from inside send(). REQUIRES: no other report is
  // under way.
  using Done = std::function<void(const Status&)>;
  void send(std::string body, int64_t timeout_ms, Done done);

 private:
  void post(const rpc::Address& where, std::string body, int64_t timeout_ms, const Done& done);

  rpc::Loop& loop_;
  Target target_;
  std::thread thread_;
  // Work that is posted to the loop may run after the sender is gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace lockstep::trainer
