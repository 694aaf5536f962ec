// Errors are values. A Status says what happened, to which file or member, and what to do next. A
// Result<T> is either a T, or the Status that explains why there is none.
//
// A code exists only if some caller acts differently on it. The message carries everything else.
// The first group of codes maps to the exit codes that a user sees (sysexits). Code inside the
// program acts on the second group.
//
// Thread-safety: values; use like std::string.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace lockstep {

enum class Code {
  kOk = 0,
  kUsage,         // 64: bad command line or job file
  kBadData,       // 65: a dataset or checkpoint is damaged
  kNoInput,       // 66: a named file is not there
  kInternal,      // 70: a bug, or the machine failed us (I/O error, disk full)
  kCheckpointed,  // 75: stopped on request with a checkpoint; run again to go on
  kConfig,        // 78: the configuration is valid but cannot work here

  kAborted,      // a collective was aborted; the generation is over
  kUnavailable,  // the peer cannot be reached now; another attempt may help
  kRefused,      // authentication or fencing refused; another attempt will not help
  kTimeout,      // a deadline passed
  kNoMemory,     // a device has no memory left for this; less may fit
  kRaised,       // a script's own code raised this: in the first line the error, then its traceback
};

// The obstacle to a connection, for callers that advise people.
enum class Obstacle : uint8_t {
  kNone,         // nothing that is known, or the error is not about a connection
  kName,         // the host's name has no address
  kPort,         // no program listens on the port
  kCertificate,  // TLS
  kVersion,      // the peer speaks another version of the protocol
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message, Obstacle obstacle = Obstacle::kNone)
      : code_(code), obstacle_(obstacle), message_(std::move(message)) {}

  static Status ok() { return {}; }

  bool is_ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  Obstacle obstacle() const { return obstacle_; }
  const std::string& message() const { return message_; }

  // Puts "context: " before the message and keeps the rest. An ok Status stays ok.
  Status with_context(const std::string& context) const {
    return is_ok() ? *this : Status(code_, context + ": " + message_, obstacle_);
  }

  bool operator==(const Status&) const = default;

 private:
  Code code_ = Code::kOk;
  Obstacle obstacle_ = Obstacle::kNone;
  std::string message_;
};

// The name of a code for logs and tests, e.g. "aborted".
const char* code_name(Code code);

// The process exit code for a status: 0, 64, 65, 66, 70, 75 or 78. Codes of the second group map to
// 70.
int exit_code(const Status& status);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}         // NOLINT: implicit by intent
  Result(Status status) : state_(std::move(status)) {}  // NOLINT: implicit by intent

  bool is_ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return is_ok() ? Status::ok() : std::get<Status>(state_); }

  // REQUIRES: is_ok().
  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

 private:
  std::variant<T, Status> state_;
};

// Returns from the enclosing function when `expr` (a Status) is an error.
#define LOCKSTEP_RETURN_IF_ERROR(expr)                                         \
  do {                                                                         \
    if (::lockstep::Status status_ = (expr); !status_.is_ok()) return status_; \
  } while (false)

// Declares `lhs` from a Result, or returns its error: LOCKSTEP_ASSIGN_OR_RETURN(auto x, f());
#define LOCKSTEP_ASSIGN_OR_RETURN(lhs, expr) \
  LOCKSTEP_ASSIGN_OR_RETURN_IMPL_(LOCKSTEP_CONCAT_(result_, __LINE__), lhs, expr)
// NOLINTBEGIN(bugprone-macro-parentheses): `lhs` declares, and `result` is declared
#define LOCKSTEP_ASSIGN_OR_RETURN_IMPL_(result, lhs, expr) \
  auto result = (expr);                                    \
  if (!result.is_ok()) return result.status();             \
  lhs = std::move(result).value()
// NOLINTEND(bugprone-macro-parentheses)
#define LOCKSTEP_CONCAT_(a, b) LOCKSTEP_CONCAT_INNER_(a, b)
#define LOCKSTEP_CONCAT_INNER_(a, b) a##b

}  // namespace lockstep
