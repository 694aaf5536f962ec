#include "data/base/guarded_range.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

#include "comm/base/check.h"

namespace lockstep::data {

struct GuardedRange::Entry {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};  // 0: of nothing
  std::atomic<bool> damaged{false};
  Entry* next = nullptr;
};

// The signal handler belongs to the process, so its state does, too.
struct Guard {
  static Guard& instance() {
    static Guard* guard = new Guard;  // never destroyed: threads may read to the very end
    return *guard;
  }

  Guard() {
    struct sigaction action {};
    action.sa_sigaction = [](int, siginfo_t* info, void* context) {
      const int error = errno;
      instance().on_bus_error(info, context);
      errno = error;
    };
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    LOCKSTEP_CHECK(::sigaction(SIGBUS, &action, &before) == 0, "no handler for SIGBUS");
  }

  GuardedRange::Entry* add(uintptr_t begin, uintptr_t end) {
    const std::lock_guard lock(mutex);
    GuardedRange::Entry* entry = entries.load();
    while (entry != nullptr && entry->end.load() != 0) entry = entry->next;
    if (entry == nullptr) {
      entry = new GuardedRange::Entry;
      entry->next = entries.load();
      entries.store(entry);
    }
    entry->damaged.store(false);
    entry->begin.store(begin);
    entry->end.store(end);
    return entry;
  }

  void remove(GuardedRange::Entry* entry) {
    const std::lock_guard lock(mutex);
    entry->end.store(0);
  }

  // REQUIRES: nothing but what a signal handler may do.
  void on_bus_error(siginfo_t* info, void* context) {
    const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
    const bool is_fault = info->si_code > 0;  // else a process sent it
    for (GuardedRange::Entry* e = entries.load(); is_fault && e != nullptr; e = e->next) {
      if (at < e->begin.load() || at >= e->end.load()) continue;
      e->damaged.store(true);
      const uintptr_t page = at / page_bytes * page_bytes;
      const uintptr_t end = (e->end.load() + page_bytes - 1) / page_bytes * page_bytes;
      if (put_zeros(page, end - page)) return;
    }
    pass_on(info, context);
  }

  // The bare system call: nothing promises that a handler may call the library's mmap, which
  // ThreadSanitizer takes for a write to pages that other threads are reading.
  static bool put_zeros(uintptr_t begin, size_t bytes) {
    return ::syscall(SYS_mmap, begin, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                     0) != -1;
  }

  void pass_on(siginfo_t* info, void* context) {
    if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(SIGBUS, info, context);
    if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
      return before.sa_handler(SIGBUS);
    if (before.sa_handler == SIG_IGN && info->si_code <= 0) return;
    // Delivered when this handler returns, with all that a core file shows.
    ::signal(SIGBUS, SIG_DFL);
    ::raise(SIGBUS);
  }

  const uintptr_t page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  std::mutex mutex;  // for threads that add and remove
  std::atomic<GuardedRange::Entry*> entries{nullptr};
  struct sigaction before {};
};

GuardedRange::GuardedRange(const void* begin, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(begin);
  if (bytes > 0) entry_ = Guard::instance().add(first, first + bytes);
}

GuardedRange::GuardedRange(GuardedRange&& other) noexcept
    : entry_(std::exchange(other.entry_, nullptr)) {}

GuardedRange& GuardedRange::operator=(GuardedRange&& other) noexcept {
  std::swap(entry_, other.entry_);
  return *this;
}

GuardedRange::~GuardedRange() {
  if (entry_ != nullptr) Guard::instance().remove(entry_);
}

bool GuardedRange::is_damaged() const {
  return entry_ != nullptr && entry_->damaged.load();
}

void keep_fault_signals(sigset_t& blocked) {
  for (const int signal : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) ::sigdelset(&blocked, signal);
}

}  // namespace lockstep::data
