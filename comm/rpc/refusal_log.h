// Logs one line about each refused stranger, but not a million lines about a million: at most
// limits::kRefusalLogLines in limits::kRefusalLogWindowMs. At the end of the window it logs how
// many more there were.
//
// Thread-safety: the loop's thread.
#pragma once

#include <cstdint>
#include <string>

#include "comm/base/log.h"
#include "comm/rpc/transport.h"

namespace lockstep::rpc {

class RefusalLog {
 public:
  RefusalLog(Loop& loop, Logger& logger) : loop_(loop), logger_(logger) {}
  ~RefusalLog();
  RefusalLog(const RefusalLog&) = delete;
  RefusalLog& operator=(const RefusalLog&) = delete;

  void refused(const std::string& peer, const std::string& reason);

 private:
  void end_window();

  Loop& loop_;
  Logger& logger_;
  TimerId window_ = 0;  // 0: no window is open
  int lines_ = 0;
  uint64_t more_ = 0;
};

}  // namespace lockstep::rpc
