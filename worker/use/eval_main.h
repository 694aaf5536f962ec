// `lockstep-worker eval`: how well a trained model does on labelled data.
#pragma once

namespace lockstep {

// argv[0] is the word "eval". Returns the exit code.
int eval_main(int argc, char** argv);

}  // namespace lockstep
