// A simulated process: a loop of its own on the simulator's clock. A fault can hold it (SIGSTOP),
// let it go on (SIGCONT), or end it (kill -9, or an exit).
//
//   running ──stop()──▶ stopped ──go_on()──▶ running        any ──end()──▶ ended
//
// INVARIANTS
//  Q1 After end() no event of the process runs, and none is destroyed later than the process.
//  Q2 Events of a stopped process run after go_on(), in the order of their times.
//  Q3 now_ms() never goes back. jump() moves it forward, as on a machine that slept. It runs a
//     little faster or slower than the world's time, and timers with it.
//
// Thread-safety: one thread.
#pragma once

#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "comm/rpc/memory_transport.h"

namespace lockstep::sim {

class ProcessLoop final : public rpc::Loop {
 public:
  // `rate`: seconds that its clock counts in one second.
  ProcessLoop(rpc::SimLoop& loop, double rate) : loop_(loop), rate_(rate) {}
  ~ProcessLoop() override { end(); }
  ProcessLoop(const ProcessLoop&) = delete;
  ProcessLoop& operator=(const ProcessLoop&) = delete;

  void post(std::function<void()> fn) override { call_after(0, std::move(fn)); }
  rpc::TimerId call_after(int64_t delay_ms, std::function<void()> fn) override;
  void cancel(rpc::TimerId id) override;
  int64_t now_ms() const override { return scaled(loop_.now_ms(), rate_) + ahead_ms_; }

  void stop() { is_stopped_ = true; }
  void go_on();
  void end();
  void jump(int64_t ms) { ahead_ms_ += ms; }
  bool is_stopped() const { return is_stopped_; }
  bool has_ended() const { return has_ended_; }

 private:
  struct Waiting {
    rpc::TimerId timer = 0;  // of loop_
    std::function<void()> fn;
  };
  void due(rpc::TimerId id);
  void run(rpc::TimerId id);

  // Rounded up: a later event must not be due at once.
  static int64_t scaled(int64_t ms, double by) {
    return static_cast<int64_t>(std::ceil(static_cast<double>(ms) * by));
  }

  rpc::SimLoop& loop_;
  const double rate_;
  std::map<rpc::TimerId, Waiting> waiting_;
  std::deque<rpc::TimerId> held_;
  rpc::TimerId last_id_ = 0;
  int64_t ahead_ms_ = 0;
  bool is_stopped_ = false;
  bool has_ended_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// How a process ended, in the form that wait() gives to its parent.
struct Ending {
  int exit_code = -1;  // -1: by a signal
  int signal = 0;
};

class World;

// REQUIRES: the world outlives it.
class Process {
 public:
  Process(World& world, std::string name);
  virtual ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& name() const { return name_; }
  uint32_t pid() const { return pid_; }
  ProcessLoop& loop() { return loop_; }
  const ProcessLoop& loop() const { return loop_; }
  bool is_alive() const { return !loop_.has_ended(); }
  const Ending& ending() const { return ending_; }

  // kill -9, or the loss of its machine, in which case its last messages do not arrive.
  void kill(bool with_machine = false);
  // Ends by itself. Its sent messages still arrive.
  void exit(int code);
  void stop();
  void go_on();

  // Called once, at the end of the process, after its loop has ended. The object is destroyed
  // later.
  std::function<void(Process&)> on_ended;

 protected:
  // Frees the memory of the process: coroutines, sessions, timers. Runs inside kill() and exit().
  virtual void vanish() = 0;

  World& world_;

 private:
  void end(Ending ending, bool deliver);

  const std::string name_;
  const uint32_t pid_;
  ProcessLoop loop_;
  Ending ending_;
};

}  // namespace lockstep::sim
