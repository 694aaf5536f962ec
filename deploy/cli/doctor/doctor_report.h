// What `lockstep doctor` found, for people and for programs.
// Thread-safety: free functions without state.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "data/doctor/find_limit.h"
#include "data/doctor/measurements.h"

namespace lockstep {

struct Diagnosis {
  doctor::Measurements measured;
  doctor::Finding finding;
};

// What people call a rung.
std::string rung_title(doctor::RungKind kind);

// A table of the rungs, the finding with its reason, and what to change.
std::string to_text(const Diagnosis& diagnosis);
nlohmann::json to_json(const Diagnosis& diagnosis);

// Two measurements beside each other, rung by rung, the second with the changes of the first.
std::string compare_text(const Diagnosis& before, const Diagnosis& after);

// What a worker of the job trains: the slower of the loader and the trainer, in samples a second.
double delivered(const doctor::Measurements& measured);

}  // namespace lockstep
