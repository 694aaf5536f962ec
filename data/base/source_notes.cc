#include "data/base/source_notes.h"

#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

uint64_t sum_of(const FilesLeftOut& left, bool only_data) {
  uint64_t files = 0;
  for (const auto& [kind, of] : left.kinds)
    if (!only_data || of.may_be_data) files += of.files;
  return files;
}

}  // namespace

std::string kind_of_file(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return "without an ending";
  return "*" + lower_case(name.substr(dot));
}

uint64_t files_in(const FilesLeftOut& left) {
  return sum_of(left, /*only_data=*/false);
}

std::string left_out_text(const FilesLeftOut& left, bool only_data) {
  constexpr size_t kKindsShown = 8;
  std::string text;
  size_t shown = 0;
  size_t more = 0;
  for (const auto& [kind, of] : left.kinds) {
    if (only_data && !of.may_be_data) continue;
    if (shown == kKindsShown) {
      ++more;
      continue;
    }
    text += (shown++ == 0 ? "" : ", ") + std::to_string(of.files) + " " + kind +
            (of.files == 1 ? " (" : " (such as ") + of.example + ")";
  }
  return more == 0 ? text : text + " and " + std::to_string(more) + " kinds more";
}

Status check_left_out(const std::string& where, const FilesLeftOut& left, uint64_t taken) {
  const uint64_t missed = sum_of(left, /*only_data=*/true);
  if (missed <= taken) return Status::ok();
  return bad(where + " has " + std::to_string(missed) +
             " files or samples that may be data but cannot be read, and only " +
             std::to_string(taken) + " that can: " + left_out_text(left, /*only_data=*/true) +
             "; convert them, or move them to another directory");
}

}  // namespace lockstep::data
