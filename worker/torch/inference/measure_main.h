// `lockstep-worker measure`: accuracy and speed of a model that `lockstep export model` has
// changed, compared with the weights of the checkpoint, on the run's own evaluation data.
#pragma once

namespace lockstep {

// argv[0] is the word "measure". Writes a JSON object to --file: the result of measure_models(),
// with "threads" and "batch", or {"error": why there are no figures}. Returns the exit code: 0 in
// both cases.
int measure_main(int argc, char** argv);

}  // namespace lockstep
