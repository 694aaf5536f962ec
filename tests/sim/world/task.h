// A coroutine on a loop of the simulator. The trainer model reads like the Runner, from top to
// bottom, and still is a set of events.
//
// A Task starts when code awaits or start()s it, and returns a T. Destroying it also destroys what
// it waits for, at any point, as a crash of a process does. REQUIRES: nothing can resume it any
// more (a Process drops the events of its loop first).
//
// Thread-safety: one thread.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace lockstep::sim {

template <typename T>
class [[nodiscard]] Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  struct Finish {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle done) const noexcept {
      return done.promise().waiter ? done.promise().waiter : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };

  struct promise_type {
    std::optional<T> value;
    std::coroutine_handle<> waiter;

    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    Finish final_suspend() noexcept { return {}; }
    void return_value(T result) { value = std::move(result); }
    void unhandled_exception() { std::terminate(); }
  };

  Task() = default;
  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  void start() { handle_.resume(); }
  bool is_done() const { return handle_ && handle_.done(); }

  // Awaiting it starts it.
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) noexcept {
    handle_.promise().waiter = waiter;
    return handle_;
  }
  T await_resume() { return std::move(*handle_.promise().value); }

 private:
  Handle handle_;
};

}  // namespace lockstep::sim

// Inside a Task<Status>: ends it with the status if that is an error. `task` must be a plain
// expression of type Task<Status>.
#define LOCKSTEP_CO_RETURN_IF_ERROR(task)         \
  do {                                            \
    ::lockstep::Status status_ = co_await (task); \
    if (!status_.is_ok()) co_return status_;      \
  } while (false)
