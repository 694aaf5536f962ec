// An agent for tests, with workers that are a shell script, and the test as its coordinator.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <thread>

#include "comm/base/file.h"
#include "comm/base/json_logger.h"
#include "comm/rpc/asio_transport.h"
#include "comm/rpc/auth.h"
#include "comm/rpc/server.h"
#include "comm/wire/control.pb.h"
#include "deploy/agent/agent.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {

// A real agent on a thread of its own, workers that are a shell script, and this test in the place
// of the coordinator.
class AgentTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(directory_ + "/logs");
    ASSERT_TRUE(
        replace_file(directory_ + "/worker", "#!/bin/sh\necho \"$@\"\nexec sleep 1000\n", 0755)
            .is_ok());
    options_.run_dir = directory_;
    options_.node = "here";
    options_.workers = 2;
    options_.leave_ms = 50;
    options_.absent_wait_ms = 50;
    options_.max_crashes = 5;
    options_.worker.words = {directory_ + "/worker"};
    options_.token = *rpc::create_token_file(directory_ + "/token");
    serve();
  }
  void TearDown() override {
    if (thread_.joinable()) {
      ASSERT_NE(server_, nullptr) << "the agent cannot be told to end\n" << where_threads_stand();
      end_with(0);
    }
    server_.reset();
  }

  void serve() {
    rpc::RpcServer::Handlers handlers;
    handlers.on_peer = [this](rpc::PeerId peer, const std::string&) { peer_ = peer; };
    handlers.on_lost = [](rpc::PeerId, const Status&) {};
    handlers.on_message = [this](rpc::PeerId, wire::Envelope&& envelope) {
      heard_.push_back(std::move(envelope));
    };
    auto server =
        rpc::RpcServer::start(transport_, {"127.0.0.1", 0}, options_.token, *logger_, handlers);
    ASSERT_TRUE(server.is_ok());
    server_ = std::move(server).value();
    ASSERT_TRUE(replace_file(directory_ + "/coordinator.json",
                             R"({"pid": 1, "run_id": "r", "http": "127.0.0.1:1", "control": ")" +
                                 rpc::to_string(server_->address()) + "\"}")
                    .is_ok());
  }

  // SIGCHLD interrupts only the agent's thread, as in the program, whose other threads block it:
  // Asio closes the pipe of its signal handler without asking whether another thread is in the
  // handler.
  void start_agent() {
    sigset_t ends;
    ::sigemptyset(&ends);
    ::sigaddset(&ends, SIGCHLD);
    ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    thread_ = std::thread([this, ends] {
      ::pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
      code_ = Agent(options_, *logger_).run();
    });
  }

  void pump_until(const std::function<bool()>& condition) {
    constexpr int64_t kDeadlineMs = 60'000;  // of a test that has failed
    const int64_t begin_ms = loop_.now_ms();
    while (!condition()) {
      loop_.run_one(10);
      if (loop_.now_ms() - begin_ms > kDeadlineMs) throw std::runtime_error("waited in vain");
    }
  }

  wire::Envelope next() {
    pump_until([this] { return !heard_.empty(); });
    wire::Envelope envelope = std::move(heard_.front());
    heard_.pop_front();
    return envelope;
  }

  void say_workers(uint32_t workers) {
    wire::Envelope envelope;
    envelope.mutable_set_workers()->set_workers(workers);
    server_->send(peer_, envelope);
  }

  void order_to_kill(uint32_t pid) {
    wire::Envelope envelope;
    envelope.mutable_kill_worker()->set_pid(pid);
    envelope.mutable_kill_worker()->set_reason("it does not answer");
    server_->send(peer_, envelope);
  }

  // Returns what the agent prints when its run ends with this code.
  std::string console_at_end_with(int code) {
    logger_ = std::move(open_json_logger(directory_ + "/log", "agent", true)).value();
    testing::internal::CaptureStderr();
    start_agent();
    next();
    wire::Envelope goodbye;
    goodbye.mutable_goodbye()->set_exit_code(static_cast<uint32_t>(code));
    goodbye.mutable_goodbye()->set_message("journal.db is full");
    server_->send(peer_, goodbye);
    EXPECT_EQ(join(), code);
    return testing::internal::GetCapturedStderr();
  }

  // The run is over; gives the agent's exit code.
  int end_with(uint32_t code) {
    wire::Envelope envelope;
    envelope.mutable_goodbye()->set_exit_code(code);
    server_->send(peer_, envelope);
    return join();
  }

  // A test with an agent that does not end cannot go on.
  int join() {
    std::atomic<bool> joined = false;
    std::thread joiner([&] {
      thread_.join();
      joined = true;
    });
    try {
      pump_until([&] { return joined.load(); });
    } catch (const std::runtime_error&) {
      std::cerr << "the agent does not end\n" << where_threads_stand() << std::flush;
      ::_exit(1);
    }
    joiner.join();
    return code_;
  }

  // A line for each thread of this process: the system call that it is in, and its signals.
  static std::string where_threads_stand() {
    std::string text;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      const auto call = read_file(task.path().string() + "/syscall", 4096);
      text += "thread " + task.path().filename().string() + ": in system call " +
              (call.is_ok() ? call->substr(0, call->find(' ')) : "unknown");
      const auto status = read_file(task.path().string() + "/status", 65'536);
      for (const char* word : {"SigPnd:\t", "ShdPnd:\t", "SigBlk:\t"}) {
        const size_t at = status.is_ok() ? status->find(word) : std::string::npos;
        if (at != std::string::npos) text += ", " + status->substr(at, std::strlen(word) + 16);
      }
      text += "\n";
    }
    return text;
  }

  TemporaryDirectory temporary_;
  std::string directory_ = temporary_.path();
  AgentOptions options_;
  std::unique_ptr<Logger> logger_ = null_logger();
  rpc::AsioLoop loop_;
  rpc::AsioTransport transport_{loop_};
  std::unique_ptr<rpc::RpcServer> server_;
  rpc::PeerId peer_ = 0;
  std::deque<wire::Envelope> heard_;
  std::thread thread_;
  int code_ = -1;
};

}  // namespace lockstep
