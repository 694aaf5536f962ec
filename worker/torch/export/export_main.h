// `lockstep-worker export`: the part of `lockstep export model` that needs LibTorch.
#pragma once

namespace lockstep {

// argv[0] is the word "export". Returns the exit code.
int export_main(int argc, char** argv);

}  // namespace lockstep
