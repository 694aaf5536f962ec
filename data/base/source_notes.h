// Notes on a data set besides its samples: which columns were taken, and which files were not.
//
// Thread-safety: values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "comm/base/status.h"
#include "data/base/column_names.h"

namespace lockstep::data {

// Files, or members of shards, that are no samples, by their kind. Hidden files do not count.
struct FilesLeftOut {
  struct Kind {
    uint64_t files = 0;
    std::string example{};     // the first of them by name
    bool may_be_data = false;  // else it describes the data, or is of another sort
  };
  std::map<std::string, Kind> kinds{};  // "*.tif", "link that leads nowhere"

  void add(const std::string& kind, const std::string& name, bool may_be_data, uint64_t files = 1) {
    Kind& known = kinds[kind];
    if (known.files == 0 || name < known.example) known.example = name;
    known.files += files;
    known.may_be_data = known.may_be_data || may_be_data;
  }
  void add(const FilesLeftOut& more) {
    for (const auto& [kind, of] : more.kinds) add(kind, of.example, of.may_be_data, of.files);
  }
};

// "*.tif", or "without an ending".
std::string kind_of_file(std::string_view name);

uint64_t files_in(const FilesLeftOut& left);

// "8 *.tif (such as a/1.tif), 1 *.md (README.md)". `only_data`: only what may be data.
std::string left_out_text(const FilesLeftOut& left, bool only_data = false);

// kBadData if the files left out that may be data outnumber the `taken` samples or files: then the
// data set is another one than the user thinks. The message begins with `where`.
Status check_left_out(const std::string& where, const FilesLeftOut& left, uint64_t taken);

// Sizes of encoded images, in pixels. 0: the data set has none.
struct ImageSizes {
  uint32_t least_width = 0;
  uint32_t most_width = 0;
  uint32_t least_height = 0;
  uint32_t most_height = 0;

  void add(uint32_t width, uint32_t height) {
    const bool is_first = most_width == 0;
    least_width = is_first ? width : std::min(least_width, width);
    least_height = is_first ? height : std::min(least_height, height);
    most_width = std::max(most_width, width);
    most_height = std::max(most_height, height);
  }
  bool differ() const { return least_width != most_width || least_height != most_height; }
};

struct SourceNotes {
  TakenColumns columns{};
  ImageSizes sizes{};
  FilesLeftOut left_out{};
};

}  // namespace lockstep::data
