// Plants every bug in turn, and looks for a seed that finds it. Faults aim at a bug if random ones
// would be too rare.
//
// Thread-safety: one thread.
#pragma once

#include <string>

namespace lockstep::sim {

// The exit code: 0 if every bug was found within its bound of seeds.
int hunt_all();

// False if no bug has this name.
bool plant_by_name(const std::string& name);

}  // namespace lockstep::sim
