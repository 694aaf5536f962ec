// Shows where the Python of a worker and of the processes below it (its data processes) stands, for
// a person whose script hangs. Python writes its own frames, also while it holds its lock: a signal
// handler of faulthandler (worker/python/lockstep/_stacks.py) does, in every process that has
// inherited it.
//
//   make_stack_memory() ─▶ descriptor ─▶ Python: faulthandler.register(signal, file=descriptor)
//                              │             └─ forks inherit both
//   take_python_stacks() ◀─────┘
//
// A process that does not answer is listed with the state that the kernel tells: T is stopped, D
// waits inside the kernel.
//
// Errors: none; facts that cannot be found are left out.
// Thread-safety: one call at a time.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep {

// The signal that asks a process for its Python frames.
int python_stack_signal();

// Memory that this process and its forks write their frames to. -1: there is none.
int make_stack_memory();

struct PythonStacks {
  std::string whole;               // all frames of all threads, a paragraph a process
  std::vector<std::string> brief;  // a process each: "process 12 (python) stands at train.py:33 in
                                   // <module>"
};

// Asks this process and those below it, one after the other. Takes up to a second for each.
PythonStacks take_python_stacks(int memory);

// The innermost frames, three at most, of the last thread in faulthandler's text; frames of
// Lockstep's own package only if there are no others. Empty: there are none.
std::string innermost_frames(const std::string& dump);

}  // namespace lockstep
