// Signals that the starter of this process has told it to ignore: SIGHUP under `nohup`, SIGINT in
// the background of a script, SIGTSTP without job control. A handler would undo that, so such a
// signal stays ignored. SIGTERM and SIGUSR1 always count, because their sender means them.
//
// Thread-safety: free functions; a process asks before it installs handlers of its own.
#pragma once

namespace lockstep {

// True if `signal` is one of a terminal's and this process ignores it.
bool is_left_ignored(int signal);

}  // namespace lockstep
