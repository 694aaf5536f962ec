// Connections between the ranks of a preflight, made like the control connections of a run: with
// the same sockets, token and certificates.
//
//   Door    listens; tells its version and the time to every peer that proves the token
//   knock   connects to a door, and makes findings of what happens
//
// Thread-safety: the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/clock.h"
#include "comm/base/log.h"
#include "comm/rpc/client.h"
#include "comm/rpc/server.h"
#include "deploy/preflight/finding.h"

namespace lockstep::preflight {

inline constexpr int64_t kKnockMs = 10'000;  // a door has to answer within this time
inline constexpr int64_t kSkewMs = 1'000;    // with more, the logs of two hosts do not fit together

class Door {
 public:
  // kConfig if it cannot listen on `host`. `name`: RpcServer.
  static Result<std::unique_ptr<Door>> open(rpc::Transport& transport, const std::string& host,
                                            const std::string& name, const rpc::Token& token,
                                            const std::string& version, Logger& logger);
  const rpc::Address& address() const { return server_->address(); }

 private:
  SystemClock clock_;
  std::unique_ptr<rpc::RpcServer> server_;
};

// Findings from a door's answer. Pure. `seen_ms` is this host's time when it came.
std::vector<Finding> judge_words(const std::string& words, const std::string& own_version,
                                 int64_t seen_ms, const std::string& door);
std::string words_of(const std::string& version, int64_t wall_ms);

// The finding of a failed connection: a bad name, route, port, certificate or token.
Finding judge_failure(const Status& why, const std::string& door);

class Knock {
 public:
  // `door`: for messages, "rank 0 (node-a) at 10.2.0.1:4100".
  Knock(rpc::Transport& transport, const rpc::Address& address, const rpc::Token& token,
        std::string version, std::string door);

  bool is_over() const { return is_over_; }
  // REQUIRES: is_over().
  const std::vector<Finding>& findings() const { return findings_; }
  // Gives up: no answer came in time.
  void give_up();

 private:
  void end(std::vector<Finding> findings);

  SystemClock clock_;
  const std::string version_;
  const std::string door_;
  Status why_{Code::kTimeout, "nobody answered"};  // the newest reason
  bool is_over_ = false;
  std::vector<Finding> findings_;
  std::unique_ptr<rpc::RpcClient> client_;
};

}  // namespace lockstep::preflight
