// `lockstep-worker predict`: writes the predictions of a model for one part of the samples to a
// file. `lockstep predict` starts one for each part and joins the files.
#pragma once

namespace lockstep {

// argv[0] is the word "predict". Returns the exit code.
int predict_main(int argc, char** argv);

}  // namespace lockstep
