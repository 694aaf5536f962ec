#include "tests/sim/world/fabric.h"

namespace lockstep::sim {

void Fabric::attach(const std::shared_ptr<Segment>& segment, Poke poke) {
  pokes_[segment->process] = std::move(poke);
  segments_[segment->process] = segment;
}

void Fabric::detach(const std::shared_ptr<Segment>& segment) {
  segment->is_alive = false;
  pokes_.erase(segment->process);
  changed();
}

void Fabric::join(Generation generation, MemberId member, const std::shared_ptr<Segment>& segment) {
  joined_[{generation, member}] = segment;
  changed();
}

std::shared_ptr<Segment> Fabric::find(Generation generation, MemberId member) const {
  const auto found = joined_.find({generation, member});
  return found == joined_.end() ? nullptr : found->second;
}

void Fabric::cut(const std::string& a, const std::string& b) {
  cuts_.emplace(a, b);
  cuts_.emplace(b, a);
  changed();
}

bool Fabric::is_cut(const std::string& a, const std::string& b) const {
  return cuts_.count({a, b}) != 0;
}

void Fabric::cut_one_way(const std::string& from, const std::string& to) {
  const auto segment = segments_.find(from);
  if (segment != segments_.end()) frozen_.try_emplace({from, to}, *segment->second);
}

bool Fabric::can_connect(const std::string& a, const std::string& b) const {
  return frozen_.count({a, b}) == 0 && frozen_.count({b, a}) == 0;
}

const Segment& Fabric::seen_by(const std::string& reader, const Segment& segment) const {
  const auto frozen = frozen_.find({segment.process, reader});
  return frozen == frozen_.end() ? segment : frozen->second;
}

// Pokes only schedule: no process acts inside another's change.
void Fabric::changed() const {
  for (const auto& [process, poke] : pokes_) poke();
}

}  // namespace lockstep::sim
