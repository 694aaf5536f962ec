#include "comm/rpc/asio_loop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <map>
#include <vector>

#include "comm/environment/inherited_signals.h"

namespace lockstep::rpc {
namespace {

void wait_for_signal(boost::asio::signal_set& set,
                     const std::shared_ptr<std::function<void(int)>>& fn) {
  set.async_wait([&set, fn](const boost::system::error_code& error, int signal) {
    if (error) return;  // the loop is being destroyed
    (*fn)(signal);
    wait_for_signal(set, fn);
  });
}

}  // namespace

struct AsioLoop::Impl {
  Impl() { ::sigemptyset(&handled); }

  struct Timer {
    std::unique_ptr<boost::asio::steady_timer> timer;
    std::function<void()> fn;
  };

  bool is_dying = false;
  TimerId last_timer = 0;
  boost::asio::io_context context{1};
  std::map<TimerId, Timer> timers;
  std::vector<std::unique_ptr<boost::asio::signal_set>> signals;
  sigset_t handled;  // by them
};

AsioLoop::AsioLoop() : impl_(std::make_unique<Impl>()) {}

AsioLoop::~AsioLoop() {
  impl_->is_dying = true;
  ::pthread_sigmask(SIG_BLOCK, &impl_->handled, nullptr);
}

void AsioLoop::run() {
  const auto work = boost::asio::make_work_guard(impl_->context);
  impl_->context.run();
  impl_->context.restart();
}

bool AsioLoop::run_one(int64_t max_wait_ms) {
  // A context stops by itself if an earlier call left it without work.
  impl_->context.restart();
  const auto work = boost::asio::make_work_guard(impl_->context);
  return impl_->context.run_one_for(std::chrono::milliseconds(max_wait_ms)) != 0;
}

void AsioLoop::stop() {
  impl_->context.stop();
}

void AsioLoop::post(std::function<void()> fn) {
  boost::asio::post(impl_->context, std::move(fn));
}

TimerId AsioLoop::call_after(int64_t delay_ms, std::function<void()> fn) {
  const TimerId id = ++impl_->last_timer;
  if (impl_->is_dying) return id;
  auto timer = std::make_unique<boost::asio::steady_timer>(impl_->context,
                                                           std::chrono::milliseconds(delay_ms));
  // The map decides, not Asio's error code: a caller may cancel an expired timer while its handler
  // already waits in the queue.
  timer->async_wait([impl = impl_.get(), id](const boost::system::error_code&) {
    const auto entry = impl->timers.extract(id);
    if (!entry.empty()) entry.mapped().fn();
  });
  impl_->timers.emplace(id, Impl::Timer{std::move(timer), std::move(fn)});
  return id;
}

void AsioLoop::cancel(TimerId id) {
  impl_->timers.erase(id);
}

int64_t AsioLoop::now_ms() const {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

void AsioLoop::on_signals(std::initializer_list<int> signals, std::function<void(int)> fn) {
  auto set = std::make_unique<boost::asio::signal_set>(impl_->context);
  for (const int signal : signals) {
    if (is_left_ignored(signal)) continue;
    set->add(signal);
    ::sigaddset(&impl_->handled, signal);
  }
  wait_for_signal(*set, std::make_shared<std::function<void(int)>>(std::move(fn)));
  impl_->signals.push_back(std::move(set));
}

boost::asio::io_context& AsioLoop::context() {
  return impl_->context;
}

bool AsioLoop::is_dying() const {
  return impl_->is_dying;
}

}  // namespace lockstep::rpc
