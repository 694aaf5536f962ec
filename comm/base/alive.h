// What is called from within work that may take minutes, every few MiB, for whoever has to show
// meanwhile that it lives. May be empty.
//
// Thread-safety: called on the thread that works.
#pragma once

#include <functional>

namespace lockstep {

using AliveFn = std::function<void()>;

}  // namespace lockstep
