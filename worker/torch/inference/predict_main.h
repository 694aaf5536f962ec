// `lockstep-worker predict`: what a model gives for one part of the samples, in a file.
// `lockstep predict` starts one for each part and joins the files.
#pragma once

namespace lockstep {

// argv[0] is the word "predict". Returns the exit code.
int predict_main(int argc, char** argv);

}  // namespace lockstep
