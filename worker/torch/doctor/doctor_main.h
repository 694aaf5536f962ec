// `lockstep-worker doctor`: the trainer's rungs of `lockstep doctor`. `lockstep` has no tensor
// library.
#pragma once

namespace lockstep {

// argv[0] is the word "doctor". Writes the measurements as JSON into the file that the arguments
// name. Returns the exit code.
int doctor_main(int argc, char** argv);

}  // namespace lockstep
