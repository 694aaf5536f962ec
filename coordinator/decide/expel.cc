// Places that computed wrong (corruption.h): no worker there takes part any more.
#include <algorithm>
#include <set>

#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

constexpr char kWhy[] = "a worker of this place computed wrong in this run";

// Its process may be fine: it is told, and what its agent starts in its place only waits.
void expel_now(Turn& turn, Member& member) {
  wire::Envelope envelope;
  envelope.mutable_evict()->set_reason(kWhy);
  turn.send(member.connection, std::move(envelope));
  declare_dead(turn, member);
}

}  // namespace

std::string names_of(const std::vector<WitnessEntry>& witnesses) {
  std::set<Place> places;
  for (const WitnessEntry& w : witnesses) places.insert(place_of(w));
  std::string names;
  for (const Place& place : places) {
    names += (names.empty() ? "" : ", ") + std::string("the worker of local rank ") +
             std::to_string(place.local_rank) + " on node " + place.node;
  }
  return names;
}

void expel(Turn& turn, const Place& place, const Wrong& wrong) {
  turn.persist(CheckEntry{wrong.generation, wrong.step, false, place.node, place.local_rank, false,
                          wrong.goes_on});
  turn.state.checks.expelled.insert(place);
}

void disown_checkpoints(Turn& turn, const Place& place, Step since) {
  void_checkpoints(turn, [&](const CheckpointEntry& entry) {
    const Member* writer = turn.find(entry.member);
    return entry.step >= since && writer != nullptr && place_of(*writer) == place;
  });
}

std::optional<Reason> evict_expelled(Turn& turn) {
  State& state = turn.state;
  if (state.checks.expelled.empty() || !is_open(state.run)) return std::nullopt;
  std::set<MemberId> listed(state.source_members.begin(), state.source_members.end());
  listed.insert(state.ranks.begin(), state.ranks.end());
  if (state.planned) listed.insert(state.planned->ranks.begin(), state.planned->ranks.end());
  std::vector<MemberId> out;
  for (MemberId id : listed) {
    const Member& member = turn.at(id);
    if (is_alive(member) && is_expelled(state, member)) out.push_back(id);
  }
  if (out.empty()) return std::nullopt;
  const std::string what = describe(state, out) + " is evicted: " + kWhy;
  for (MemberId id : out) expel_now(turn, turn.at(id));
  return after_deaths(turn, out, what, 70);
}

}  // namespace lockstep::coordinator
