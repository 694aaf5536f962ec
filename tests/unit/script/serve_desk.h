// Python's side of a desk, for tests: a thread that answers the orders of the training thread.
#pragma once

#include <chrono>

#include "worker/script/desk.h"

namespace lockstep {

// `answer(order, reply)` fills in the reply to each order, until END.
template <typename Answer>
void serve_desk(Desk& desk, Answer answer) {
  ls_order order{};
  ls_reply reply{};
  bool has_reply = false;
  for (;;) {
    const bool has_order =
        desk.next(has_reply ? &reply : nullptr, &order, std::chrono::milliseconds(100)).value();
    has_reply = false;
    if (!has_order) continue;
    if (order.kind == LS_END) return;
    reply = {};
    answer(order, reply);
    has_reply = true;
  }
}

}  // namespace lockstep
