// The changes that evaluation makes to a training program: dropout, batch norm and the like are
// arguments of their operators there.
//
// Whether a switched program is right must be asked elsewhere: every other operator that draws
// random numbers, and every other write to a buffer, stays.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "worker/model/exported_program/program.h"

namespace lockstep::exported {

struct ArgumentSwitch {
  size_t argument = 0;    // index into ProgramNode::arguments
  ProgramArgument value;  // in evaluation
};

// `train`, `training` and `use_input_stats` become false, dropout_p becomes 0. Not in a batch or
// instance norm without running statistics: it has only the statistics of the batch.
std::vector<ArgumentSwitch> evaluation_switches(const ProgramNode& node);

// True if the node only counts steps: add_ of a whole number to an int64 buffer of the program,
// whose result no other node takes. Evaluation leaves it out. `index`: of the node in graph.nodes.
bool is_step_counter(const Program& program, size_t index);

// The values of a graph that are int64 buffers of its program.
using IsCounter = std::function<bool(ValueRef)>;

IsCounter counters_of(const Program& program);
// The same for the sub-graph that `node` passes its last arguments to. `outer`: of the node's own
// graph.
IsCounter counters_of(const ProgramNode& node, const ProgramGraph& inner, IsCounter outer);

// The same for a node in any graph.
bool is_step_counter(const ProgramGraph& graph, size_t index, const IsCounter& is_counter);

}  // namespace lockstep::exported
