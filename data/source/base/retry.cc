#include "data/source/base/retry.h"

namespace lockstep::source {
namespace {

bool may_change(Code code) {
  return code == Code::kUnavailable || code == Code::kTimeout || code == Code::kBadData;
}

Status for_users(const std::string& what, uint32_t attempts, const Status& last) {
  const std::string tried = attempts > 1 ? " (" + std::to_string(attempts) + " attempts)" : "";
  const std::string text = "cannot read " + what + tried + ": " + last.message();
  switch (last.code()) {
    case Code::kBadData:
      return {Code::kBadData, text +
                                  ". Put the old file back and resume the run, or begin a new "
                                  "run in another run directory"};
    case Code::kUnavailable:
    case Code::kTimeout:
      return {Code::kNoInput, text + ". Resume the run when the source answers again"};
    case Code::kRefused:
      return {Code::kNoInput, text};
    default:
      return {last.code(), text};
  }
}

}  // namespace

Status with_retries(const RetryOptions& options, const std::atomic<bool>& stop,
                    const std::string& what, const std::function<Status()>& try_it) {
  const store::Tried tried = store::with_retries(options, stop, may_change, try_it);
  if (tried.status.is_ok()) return tried.status;
  if (tried.status.code() == Code::kAborted) return {Code::kAborted, "reading was cancelled"};
  return for_users(what, tried.attempts, tried.status);
}

}  // namespace lockstep::source
