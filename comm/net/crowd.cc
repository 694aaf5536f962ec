#include "comm/net/crowd.h"

#include <algorithm>

#include "comm/base/check.h"
#include "comm/base/limits.h"

namespace lockstep {
namespace {

constexpr size_t kStrangersWeight = 4;

}  // namespace

std::string_view host_of(std::string_view peer) {
  return peer.substr(0, peer.rfind(':'));
}

void Crowd::add(Id id, std::string_view source, int64_t now_ms) {
  members_.emplace(id, Member{std::string(source), now_ms});
  by_source_[std::string(source)].insert(id);
}

void Crowd::remove(Id id, bool is_proven) {
  const auto member = members_.extract(id);
  if (member.empty()) return;
  const std::string& source = member.mapped().source;
  const auto of_source = by_source_.find(source);
  of_source->second.erase(id);
  if (of_source->second.empty()) by_source_.erase(of_source);
  if (is_proven && own_.size() < limits::kOwnAddresses) own_.insert(source);
}

const std::set<Crowd::Id>& Crowd::largest() const {
  LOCKSTEP_CHECK(!by_source_.empty(), "nobody is there to make room");
  const auto weight = [&](const auto& entry) {
    return entry.second.size() * (own_.contains(entry.first) ? 1 : kStrangersWeight);
  };
  return std::max_element(by_source_.begin(), by_source_.end(),
                          [&](const auto& a, const auto& b) { return weight(a) < weight(b); })
      ->second;
}

Crowd::Id Crowd::first_to_go() const {
  return *largest().begin();
}

std::optional<Crowd::Id> Crowd::overdue(size_t fair, int64_t since_ms) const {
  const std::set<Id>& most = largest();
  if (most.size() > fair) return *most.begin();
  const auto& [oldest, member] = *members_.begin();
  return member.came_ms < since_ms ? std::optional(oldest) : std::nullopt;
}

}  // namespace lockstep
