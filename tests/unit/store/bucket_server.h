// The tests' own bucket (tests/harness/bucket.py), as a process.
//
// Thread-safety: one thread.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/store/s3_blobs.h"

namespace lockstep::store {

inline constexpr uint64_t kMost = 100'000'000;  // more than any object of the tests

class BucketServer {
 public:
  // `faults`: as JSON, bucket_faults.py. `more`: words of its command line.
  explicit BucketServer(const std::string& faults = "{}",
                        const std::vector<std::string>& more = {}) {
    std::array<int, 2> ends{};
    std::array<int, 2> life{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(life.data(), O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions{};
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, life[0], STDIN_FILENO);
    std::vector<std::string> words{"python3", LOCKSTEP_BUCKET, "--until-eof", "--faults", faults};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    EXPECT_EQ(::posix_spawnp(&pid_, "python3", &actions, nullptr, argv.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    ::close(life[0]);
    life_ = life[1];
    std::FILE* said = ::fdopen(ends[0], "r");
    int port = 0;
    EXPECT_EQ(std::fscanf(said, "ready %d", &port), 1) << "the bucket did not start";
    std::fclose(said);
    endpoint_ = "http://127.0.0.1:" + std::to_string(port);
  }
  ~BucketServer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(life_);
  }
  BucketServer(const BucketServer&) = delete;
  BucketServer& operator=(const BucketServer&) = delete;

  // Of the tests' usual keys, which `changes` changes.
  S3Options options(const std::map<std::string, std::string>& changes = {}) const {
    std::map<std::string, std::string> env{{"AWS_ACCESS_KEY_ID", "AKIDLOCKSTEPTEST0001"},
                                           {"AWS_SECRET_ACCESS_KEY", "a/secret+of/the+tests"},
                                           {"AWS_REGION", "us-east-1"},
                                           {"AWS_ENDPOINT_URL", endpoint_},
                                           {"HOME", "/nonexistent"}};
    for (const auto& [name, value] : changes) env[name] = value;
    S3Options options;
    options.retries = {.attempts = 6, .pause_ms = 5};
    options.env = [env](const char* name) {
      const auto found = env.find(name);
      return found == env.end() ? std::string() : found->second;
    };
    options.now = [] { return static_cast<int64_t>(std::time(nullptr)); };
    return options;
  }

  std::unique_ptr<BlobStore> open(const std::string& url = "s3://runs/first run",
                                  const std::map<std::string, std::string>& changes = {}) const {
    return make_s3_blobs(url, options(changes), never_);
  }

 private:
  pid_t pid_ = -1;
  int life_ = -1;  // the bucket ends when this end of a pipe is closed, as by our death
  std::string endpoint_;
  const std::atomic<bool> never_ = false;
};

}  // namespace lockstep::store
