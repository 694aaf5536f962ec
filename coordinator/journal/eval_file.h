// DIR/evals.jsonl: one line for each evaluation of the surviving lineage, for people and plots. The
// coordinator derives it from the journal, after the commit.
//
//   {"step":47,"epoch":0,"loss":0.521,"accuracy":0.87,"correct":87,"samples":100,"top5":0.99,
//    "lr":0.001}
//
// `step` is the number of steps before the evaluation. `top5` is there from 10 classes on. A model
// of tokens has `perplexity`, the exponential of the loss, instead of it. `lr` is the learning rate
// of the last step; a run that is older than this file has none for its first evaluations. A value
// that is not a number becomes null.
//
// INVARIANTS
//  V1 After follow() the file has a line for each evaluation, ascending by step, and nothing else,
//     whatever was there before.
//
// Thread-safety: one thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/base/descriptors.h"
#include "comm/base/status.h"
#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {

std::string eval_line(const EvalEntry& eval, bool of_tokens);  // with its newline

class EvalFile {
 public:
  // Empties the file: follow() writes it again.
  static Result<std::unique_ptr<EvalFile>> open(const std::string& path, bool of_tokens);

  // Cuts the lines of evaluations that are no longer there, and appends new ones. Writes the whole
  // file again if somebody has deleted or replaced it, or if it has another size.
  Status follow(const std::map<Step, EvalEntry>& evals);

  // Does the same at the end of a run, and also reads the file, because a size does not tell that
  // somebody has changed a line. True if a line was changed: the file is written again.
  Result<bool> correct(const std::map<Step, EvalEntry>& evals);

 private:
  struct Line {
    Step step = 0;
    Generation generation = 0;
    off_t end = 0;
  };

  EvalFile(std::string path, bool of_tokens) : path_(std::move(path)), of_tokens_(of_tokens) {}
  Status begin_anew();
  bool is_whole() const;
  Status cut(const std::map<Step, EvalEntry>& evals);

  const std::string path_;
  const bool of_tokens_;
  Descriptor fd_;
  std::vector<Line> lines_;
};

}  // namespace lockstep::coordinator
