#include "comm/rpc/refusal_log.h"

#include "comm/base/limits.h"

namespace lockstep::rpc {

RefusalLog::~RefusalLog() {
  loop_.cancel(window_);
}

void RefusalLog::refused(const std::string& peer, const std::string& reason) {
  if (window_ == 0) {
    window_ = loop_.call_after(limits::kRefusalLogWindowMs, [this] { end_window(); });
  }
  if (++lines_ > limits::kRefusalLogLines) {
    ++more_;
    return;
  }
  logger_.warn("stranger_refused", "refused a connection from " + peer + ": " + reason,
               {{"peer", peer}, {"reason", reason}});
}

void RefusalLog::end_window() {
  window_ = 0;
  lines_ = 0;
  if (more_ == 0) return;
  logger_.warn("strangers_refused",
               "refused " + std::to_string(more_) + " more connections in the last " +
                   std::to_string(limits::kRefusalLogWindowMs / 1000) + " s",
               {{"count", more_}});
  more_ = 0;
}

}  // namespace lockstep::rpc
