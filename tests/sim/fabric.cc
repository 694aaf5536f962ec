#include "tests/sim/fabric.h"

namespace lockstep::sim {

void Fabric::attach(const std::shared_ptr<Segment>& segment, Poke poke) {
  pokes_[segment->process] = std::move(poke);
}

void Fabric::detach(const std::shared_ptr<Segment>& segment) {
  segment->is_alive = false;
  pokes_.erase(segment->process);
  changed();
}

void Fabric::join(Generation generation, MemberId member,
                  const std::shared_ptr<Segment>& segment) {
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

// Pokes only schedule: nobody acts from inside another's change.
void Fabric::changed() const {
  for (const auto& [process, poke] : pokes_) poke();
}

}  // namespace lockstep::sim
