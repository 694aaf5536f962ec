// `lockstep-worker doctor`: the trainer's rungs of `lockstep doctor`, which has no tensor library.
#pragma once

namespace lockstep {

// argv[0] is the word "doctor". Writes what it measured as JSON into the file that it is told;
// gives the exit code.
int doctor_main(int argc, char** argv);

}  // namespace lockstep
