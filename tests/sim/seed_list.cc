#include "tests/sim/seed_list.h"

#include <fstream>
#include <sstream>

namespace lockstep::sim {

Result<std::vector<ListedSeed>> read_seed_list(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status(Code::kUsage, "cannot read the list of seeds " + path);
  std::vector<ListedSeed> list;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    unsigned drawing = 0;
    ListedSeed listed;
    std::string rest;
    if (!(words >> drawing)) {
      words.clear();
      if (!(words >> rest)) continue;  // empty, or a comment
    }
    const bool is_known = drawing >= static_cast<unsigned>(Drawing::kOneStream) &&
                          drawing <= static_cast<unsigned>(kUsualDrawing);
    if (!is_known || !(words >> listed.seed) || words >> rest)
      return Status(Code::kUsage, path + ":" + std::to_string(number) +
                                      ": a line is a drawing (1 to 3) and a seed, not '" + line +
                                      "'");
    listed.drawing = static_cast<Drawing>(drawing);
    list.push_back(listed);
  }
  if (list.empty()) return Status(Code::kUsage, path + " names no seed");
  return list;
}

}  // namespace lockstep::sim
