// The sources of the inputs of a model's programs: the training program, and a program for
// evaluation or predictions that was exported from the same module.
//
// Thread-safety: a free function and a value.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "worker/model/exported_program/program.h"
#include "worker/model/exported_program/roles.h"
#include "worker/torch/plan/bound_program.h"
#include "worker/torch/plan/program_parts.h"

namespace lockstep::exported {

// The sources of the training program: its tensors by their kinds. In training every forward counts
// in a tensor of its own, which nothing reads.
std::vector<InputSource> sources_of(const Program& program, const ProgramParts& parts,
                                    const ProgramRoles& roles, bool is_evaluation);

// The sources of another program, which shares parameters, statistics and counters of the same
// names and shapes with the training program.
class EvalSources {
 public:
  // `notes` gets a sentence about each tensor with another value than in the training program. All
  // arguments outlive the object.
  EvalSources(const Program& training, const ProgramParts& parts, std::vector<std::string>* notes);

  // `who`: the program, for notes. kConfig for a program of another module; the message begins with
  // what the program has.
  Result<std::vector<InputSource>> of(const std::string& who, const Program& program,
                                      const ProgramRoles& roles) const;

 private:
  struct Known {
    InputSource source;
    const ProgramTensor* tensor = nullptr;
  };
  void add(const std::vector<size_t>& tensors, InputSource::Kind kind);
  Result<InputSource> source_of(const ProgramInput& input, const ProgramTensor& tensor) const;
  void note_other_value(const std::string& who, const ProgramInput& input,
                        const ProgramTensor& tensor) const;

  const Program& training_;
  std::vector<std::string>* notes_;
  std::map<std::string, Known> known_;
};

}  // namespace lockstep::exported
