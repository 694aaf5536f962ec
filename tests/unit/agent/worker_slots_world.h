// The workers of an agent, for tests of when they are started, and where.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/file.h"
#include "comm/base/log.h"
#include "deploy/agent/worker_slots.h"
#include "tests/support/temporary_directory.h"

namespace lockstep {

// The workers are a shell script that says its arguments and waits until it is killed.
class WorkerSlotsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(directory_ + "/logs");
    ASSERT_TRUE(replace_file(program(), "#!/bin/sh\necho \"$@\"\nexec sleep 1000\n", 0755).is_ok());
  }
  void TearDown() override {
    slots_->signal_all(SIGKILL);
    while (::wait(nullptr) > 0) {
    }
  }

  std::string program() const { return directory_ + "/worker"; }

  void start(const std::vector<uint32_t>& ranks) {
    for (const uint32_t rank : ranks) ASSERT_TRUE(slots_->start(rank, now_ms_).is_ok());
  }

  // Kills the worker that was started as the `index`th of those that live, and reports its end.
  WorkerEnd kill(size_t index, int signal = SIGKILL) {
    const pid_t pid = slots_->living().at(index).pid;
    ::kill(pid, signal);
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    auto end = slots_->ended({pid, ProcessEnd::from_wait_status(status)}, false, false, now_ms_);
    EXPECT_TRUE(end.has_value());
    return *end;
  }

  // Kills the worker and reports that it ended with 0.
  WorkerEnd leave(size_t index) {
    const pid_t pid = slots_->living().at(index).pid;
    ::kill(pid, SIGKILL);
    EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
    return slots_->ended({pid, ProcessEnd{0, 0}}, false, false, now_ms_).value();
  }

  void use(uint32_t crashes, uint32_t preemptions) {
    slots_.emplace(
        WorkerSlotsOptions{WorkerLaunch{{program()}}, directory_, "node1", crashes, preemptions},
        *logger_);
  }

  TemporaryDirectory temporary_;
  std::string directory_ = temporary_.path();
  std::unique_ptr<Logger> logger_ = null_logger();
  int64_t now_ms_ = 1'000'000;
  std::optional<WorkerSlots> slots_;
};

}  // namespace lockstep
