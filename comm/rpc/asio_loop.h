// What the adapters in this folder see of AsioLoop. Internal.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "comm/rpc/asio_transport.h"

namespace lockstep::rpc {

struct AsioLoop::Impl {
  struct Timer {
    std::unique_ptr<boost::asio::steady_timer> timer;
    std::function<void()> fn;
  };

  bool is_dying = false;
  TimerId last_timer = 0;
  boost::asio::io_context context{1};
  std::map<TimerId, Timer> timers;
  std::vector<std::unique_ptr<boost::asio::signal_set>> signals;
};

}  // namespace lockstep::rpc
