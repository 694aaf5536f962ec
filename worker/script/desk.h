// The meeting place of the training thread, which decides, and Python's main thread, which
// computes. One order lies on the desk at a time.
//
//            ask()                next()               next(reply)
//   free ─────────▶ ordered ─────────────▶ in hand ─────────────▶ replied ──▶ free
//    │                 │                      │
//    └───── end() ─────┴──────────────────────┴──▶ over: next() gives the end
//
// INVARIANTS
//  K1 Between an order and its reply the training thread does nothing, so Python may use what it
//     owns; between a reply and the next order Python does nothing.
//  K2 ask() of an order that was taken returns only with its reply: nothing that Python uses is
//     freed under it. After end() Python takes no order that it has not taken by then.
//  K3 After end() there is no order but the end.
//
// Thread-safety: ask() on the training thread, next() on Python's, the others on any.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

#include "comm/base/status.h"
#include "worker/script/core.h"

namespace lockstep {

struct DeskEnd {
  int exit_code = 0;
  bool is_done = false;  // every step is applied
  std::string text;
};

// The status of an order, from its reply: ok, or why the script failed.
Status status_of(const ls_reply& reply);

class Desk {
 public:
  // kAborted if the run is over before Python takes the order.
  Result<ls_reply> ask(const ls_order& order);

  // Hands `reply` over, if there is one, and waits for the next order. False: there is none yet.
  // kUsage for a reply without an order, and for a wait with an order in hand.
  Result<bool> next(const ls_reply* reply, ls_order* order, std::chrono::milliseconds wait);

  // Python ends without a reply to the order that it may have in hand: the order has failed.
  void fail_in_hand(int exit_code);

  // The run is over. The first end counts.
  void end(DeskEnd end);
  bool is_over() const;
  // A debugger has stopped Python, or lets it go on. A wait for stopped Python is a wait for a
  // person.
  void set_paused(bool is_paused) { is_paused_.store(is_paused); }
  bool is_paused() const { return is_paused_.load(); }
  // Waits until Python has taken the end.
  bool wait_until_told(std::chrono::milliseconds wait) const;

 private:
  enum class Place { kFree, kOrdered, kInHand, kReplied };

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Place place_ = Place::kFree;
  ls_order order_{};
  ls_reply reply_{};
  std::optional<DeskEnd> end_;
  bool is_told_ = false;
  std::atomic<bool> is_paused_{false};
};

}  // namespace lockstep
