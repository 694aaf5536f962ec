// `lockstep-worker replay`: computes one past step again and looks into it.
#pragma once

namespace lockstep {

// argv[0] is the word "replay". Returns the exit code: 0 for the same bits, 1 otherwise.
int replay_main(int argc, char** argv);

}  // namespace lockstep
