// The words of a program that has come to the limit of processes and threads of its user or
// container.
#pragma once

namespace lockstep {

// The end of a sentence that says what could not be started.
inline constexpr char kRaiseProcessLimit[] =
    "raise the limit of processes (ulimit -u, or pids.max of the container)";

// From now on a thread that cannot be started, and whose starter does not catch that, ends this
// process with a line that names the limit and exit code 70, instead of an abort.
void explain_missing_threads();

}  // namespace lockstep
