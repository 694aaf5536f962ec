// `lockstep-worker replay`: one past step, computed again and looked into.
#pragma once

namespace lockstep {

// argv[0] is the word "replay". Gives the exit code: 0 the same bits, 1 not.
int replay_main(int argc, char** argv);

}  // namespace lockstep
