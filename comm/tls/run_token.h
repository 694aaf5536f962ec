// The secret of a run: a program that can read RUN_DIR/token belongs to the run. A user may replace
// the token during the run (write a new one beside it and rename). Every process reads it again,
// and for limits::kOldTokenMs the old one holds, too.
//
// A file has the token, 64 hex digits, and perhaps a second line "start ID". Another ID means
// another start of the run. Processes of an earlier start ignore its token.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/base/log.h"
#include "comm/base/status.h"
#include "comm/tls/private_file.h"

namespace lockstep::rpc {

// Writes 32 random bytes as hex to `path`, readable by us alone, and returns them. Replaces an
// existing file.
Result<std::string> create_token_file(const std::string& path);

// The same for a new start of the run: processes of an earlier start stay out.
Result<std::string> create_run_token(const std::string& path);

// kNoInput if it is not there. kConfig, with the command that mends it, if it is not ours, others
// may read it, or it is no token.
Result<std::string> read_token_file(const std::string& path);

class TokenFile {
 public:
  // Errors of read_token_file(). `logger` outlives this object.
  static Result<std::shared_ptr<TokenFile>> open(const std::string& path, Logger& logger);

  // The tokens that hold now, the newest first. `look_now` reads the file even if it seems
  // unchanged.
  std::vector<std::string> accepted(bool look_now);

 private:
  struct Content {
    std::string token;
    std::string start;
  };
  static Result<Content> read(const std::string& path);
  TokenFile(std::string path, FileWatch watch, Content content, Logger& logger);
  void read_again(int64_t now_ms);

  friend Result<std::string> read_token_file(const std::string& path);

  const std::string path_;
  Logger& logger_;
  std::mutex mutex_;
  FileWatch watch_;
  Content content_;
  std::string complaint_;  // the last complaint about a file that cannot be used
  std::string old_;        // empty: none
  int64_t old_until_ms_ = 0;
};

// A fixed token, or one in a file.
class Token {
 public:
  Token() = default;
  Token(std::string fixed) : fixed_(std::move(fixed)) {}  // NOLINT: a token may be a string
  Token(const char* fixed) : fixed_(fixed) {}             // NOLINT
  Token(std::shared_ptr<TokenFile> file) : file_(std::move(file)) {}  // NOLINT

  bool empty() const { return fixed_.empty() && file_ == nullptr; }
  std::vector<std::string> accepted(bool look_now = false) const {
    return file_ ? file_->accepted(look_now) : std::vector<std::string>{fixed_};
  }
  std::string newest() const { return accepted().front(); }

  // The first of accepted() for which `fits`. Reads the file before it gives up.
  template <typename Fits>
  std::optional<std::string> find(const Fits& fits) const {
    for (const bool look_now : {false, true})
      for (std::string& token : accepted(look_now))
        if (fits(token)) return std::move(token);
    return std::nullopt;
  }

 private:
  std::string fixed_;
  std::shared_ptr<TokenFile> file_;
};

}  // namespace lockstep::rpc
