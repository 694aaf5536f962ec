// `lockstep-worker generate`: continues a text, token by token, on stdout.
#pragma once

namespace lockstep {

// argv[0] is the word "generate". Returns the exit code.
int generate_main(int argc, char** argv);

}  // namespace lockstep
