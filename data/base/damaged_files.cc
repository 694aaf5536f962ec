#include "data/base/damaged_files.h"

#include <utility>

namespace lockstep::data {

Status DamagedFiles::take(uint64_t i, Status status) {
  if (status.code() != Code::kBadData) return status;
  const std::lock_guard lock(mutex_);
  messages_.emplace(i, status.message());
  return Status::ok();
}

Status DamagedFiles::status() const {
  constexpr size_t kNamed = 20;
  if (empty()) return Status::ok();
  std::string text;
  size_t named = 0;
  for (const auto& [i, message] : messages_) {
    if (named == kNamed) break;
    if (named == 1) text += "\nNor can these be used:";
    text += (named++ == 0 ? "" : "\n  ") + message;
  }
  if (messages_.size() > kNamed)
    text += "\n  and " + std::to_string(messages_.size() - kNamed) +
            " more; lockstep data verify lists them";
  return {Code::kBadData, text};
}

Status joined_damage(const Status& first, const Status& second) {
  if (second.code() != Code::kBadData || second.message() == first.message()) return first;
  if (first.is_ok()) return second;
  return {Code::kBadData, first.message() + "\n" + second.message()};
}

}  // namespace lockstep::data
