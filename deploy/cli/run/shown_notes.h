// What workers found out about the model of a run, for its terminal.
//
// Thread-safety: one thread.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

class ModelNotes {
 public:
  explicit ModelNotes(const std::string& run_dir);

  // The lines of logs/model-notes.txt, once it is there; then none.
  std::vector<std::string> once();

 private:
  const std::string path_;
  bool is_told_ = false;
};

}  // namespace lockstep
