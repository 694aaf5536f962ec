// Reads what workers tell the terminal of a run: what they found out about its model, and what a
// script's loop has waited for so long that a person should know.
//
// Thread-safety: one thread.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

class WorkerNotes {
 public:
  // Skips what logs/waits.txt has by now: an earlier start wrote it.
  explicit WorkerNotes(const std::string& run_dir);

  // The lines that came since the last call. At most 8 of each file.
  std::vector<std::string> news();

 private:
  struct Told {
    std::string path;
    size_t bytes = 0;  // of its text
    size_t lines = 0;
  };
  static void tell(Told& told, std::vector<std::string>& lines);

  Told model_;
  Told waits_;
};

}  // namespace lockstep
