// `lockstep-worker eval`: writes the scores of a trained model on one part of labelled data to a
// file. `lockstep eval` starts one for each part and adds the scores up.
#pragma once

namespace lockstep {

// argv[0] is the word "eval". Returns the exit code.
int eval_main(int argc, char** argv);

}  // namespace lockstep
