// The findings of `lockstep doctor` as text and as JSON.
//
// Thread-safety: free functions without state.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/doctor/find_limit.h"
#include "data/doctor/measurements.h"

namespace lockstep {

// Steps with another value of cluster.malloc than the job's.
struct AllocatorRate {
  std::string name;
  doctor::Rate rate;  // of the trainer, batch at hand
};

struct Diagnosis {
  doctor::Measurements measured;
  std::vector<AllocatorRate> allocators = {};
  doctor::FaultFinding finding;
};

// The name of a rung for people.
std::string rung_title(doctor::RungKind kind);

// A table of the rungs, the finding with its reason, and what to change.
std::string to_text(const Diagnosis& diagnosis);
nlohmann::json to_json(const Diagnosis& diagnosis);

// Compares two measurements rung by rung; the second was made with the changes that the first
// proposed.
std::string compare_text(const Diagnosis& before, const Diagnosis& after);

// Samples/s of one worker: the slower of its loader and its trainer; 0 if one was not measured.
double delivered(const doctor::Measurements& measured);

}  // namespace lockstep
