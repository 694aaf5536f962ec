// A callback for work that may take minutes. The work calls it every few MiB, so that its owner can
// show that it lives. May be empty.
//
// Thread-safety: called on the working thread.
#pragma once

#include <functional>

namespace lockstep {

using AliveFn = std::function<void()>;

}  // namespace lockstep
