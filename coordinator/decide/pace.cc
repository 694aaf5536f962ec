// Slots follow the measured speed of the workers, so that no worker waits long for a slow one: the
// records say how long each took for the slots that it computed. A window of them is judged as a
// whole; what one window shows may be an accident, so only several in a row change anything. The
// coordinator reports a worker that is slow for long whatever it is given, and replaces it when
// another one waits.
#include <algorithm>
#include <cmath>

#include "coordinator/decide/decide_internal.h"
#include "coordinator/state/slots.h"

namespace lockstep::coordinator {
namespace {

constexpr int64_t kWindowMs = 10'000;
constexpr uint64_t kWindowSteps = 20;      // of each member
constexpr uint32_t kRebalanceWindows = 2;  // in a row, each of which asks for it
constexpr uint32_t kSlowWindows = 3;       // in a row, in each of which it is an outlier
constexpr double kSlowRatio = 2.0;         // to the median: an outlier
constexpr double kAlikeRatio = 1.2;        // to the median, or the median to it: no difference
constexpr uint64_t kGainPercent = 20;      // so much shorter, or a rebalance is not worth it

bool is_on(const Turn& turn) {
  return turn.options.job.cluster().rebalance();
}

// The lower one of two, because the faster of two workers says what is usual.
double median(std::vector<double> costs) {
  const auto middle = costs.begin() + static_cast<long>((costs.size() - 1) / 2);
  std::nth_element(costs.begin(), middle, costs.end());
  return *middle;
}

bool is_whole(const Turn& turn) {
  const State& state = turn.state;
  const SpeedWatch& watch = state.speeds;
  if (watch.generation != state.source_generation || turn.now_ms - watch.since_ms < kWindowMs) {
    return false;
  }
  // The last members may be dead, and the generation stands until their agents start others.
  return std::all_of(state.source_members.begin(), state.source_members.end(), [&](MemberId id) {
    const Member& member = state.members.at(id);
    const auto pace = watch.paces.find(id);
    return is_alive(member) && (member.slots.begin == member.slots.end ||
                                (pace != watch.paces.end() && pace->second.steps >= kWindowSteps));
  });
}

void begin_window(Turn& turn) {
  SpeedWatch& watch = turn.state.speeds;
  watch.since_ms = turn.now_ms;
  watch.paces.clear();
}

void take_costs(State& state) {
  SpeedWatch& watch = state.speeds;
  for (const auto& [id, pace] : watch.paces) {
    watch.cost_us[id] =
        std::max(1.0, static_cast<double>(pace.busy_us)) / static_cast<double>(pace.slots);
  }
  std::erase_if(watch.cost_us,
                [&](const auto& entry) { return !is_alive(state.members.at(entry.first)); });
}

void judge_outliers(Turn& turn) {
  SpeedWatch& watch = turn.state.speeds;
  std::vector<double> costs;
  for (const auto& [id, pace] : watch.paces) costs.push_back(watch.cost_us.at(id));
  const double usual = median(std::move(costs));
  for (const auto& [id, pace] : watch.paces) {
    const Member& member = turn.at(id);
    const double ratio = watch.cost_us.at(id) / usual;
    if (ratio <= kSlowRatio) {
      watch.slow.erase(place_of(member));
      continue;
    }
    if (++watch.slow[place_of(member)] != kSlowWindows) continue;
    turn.note(LogLine::Level::kWarn, "slow_worker",
              describe(turn.state, member) + " needs " + std::to_string(std::lround(ratio * 100)) +
                  " % of the usual time for a slot, for " + std::to_string(kSlowWindows) +
                  " windows in a row: check its machine. Lockstep replaces it when another worker "
                  "waits for a place");
  }
}

// Whether other runs would make the steps of this window shorter by much.
void judge_balance(Turn& turn) {
  State& state = turn.state;
  std::vector<SlotRun> runs;
  for (MemberId id : state.source_members) runs.push_back(state.members.at(id).slots);
  const std::vector<uint32_t> costs = slot_costs(turn, state.source_members);
  const uint64_t now = longest_time(runs, costs);
  const auto nodes = node_of_rank(state, state.source_members);
  const uint64_t next = longest_time(assign_slots(costs, nodes, turn.options.shape.slots), costs);
  const bool is_worth_it = next * 100 <= now * (100 - kGainPercent);
  state.speeds.agreeing = is_worth_it ? state.speeds.agreeing + 1 : 0;
}

}  // namespace

void note_pace(Turn& turn, const Member& member, Generation generation,
               const wire::StepRecord& record) {
  State& state = turn.state;
  const uint32_t slots = member.slots.end - member.slots.begin;
  // The slots of a shorter step are shorter too.
  if (!is_on(turn) || generation != state.source_generation || !is_source(state, member) ||
      slots == 0 || record.samples() != turn.options.shape.global_batch) {
    return;
  }
  if (state.speeds.generation != generation) {
    state.speeds.generation = generation;
    state.speeds.agreeing = 0;
    begin_window(turn);
  }
  MemberPace& pace = state.speeds.paces[member.id];
  const wire::PhaseTimes& times = record.times();
  ++pace.steps;
  pace.slots += slots;
  pace.busy_us +=
      uint64_t{times.data_wait_us()} + uint64_t{times.forward_us()} + uint64_t{times.backward_us()};
}

void judge_pace(Turn& turn) {
  State& state = turn.state;
  if (!is_on(turn) || state.run != RunState::kStarted || !is_whole(turn)) return;
  take_costs(state);
  judge_outliers(turn);
  judge_balance(turn);
  begin_window(turn);
}

std::vector<uint32_t> slot_costs(const Turn& turn, const std::vector<MemberId>& ranks) {
  const std::map<MemberId, double>& known = turn.state.speeds.cost_us;
  std::vector<uint32_t> costs(ranks.size(), kEvenCost);
  std::vector<double> measured;
  for (MemberId id : ranks) {
    if (const auto cost = known.find(id); cost != known.end()) measured.push_back(cost->second);
  }
  if (!is_on(turn) || measured.empty()) return costs;
  const double usual = median(std::move(measured));
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto cost = known.find(ranks[rank]);
    if (cost == known.end()) continue;
    const double ratio = cost->second / usual;
    if (ratio <= kAlikeRatio && ratio >= 1 / kAlikeRatio) continue;
    costs[rank] =
        static_cast<uint32_t>(std::lround(std::clamp<double>(ratio * kEvenCost, 1, kHighestCost)));
  }
  return costs;
}

bool is_rebalance_due(const State& state) {
  return state.speeds.generation == state.source_generation &&
         state.speeds.agreeing >= kRebalanceWindows;
}

bool is_slow(const State& state, const Member& member) {
  const auto slow = state.speeds.slow.find(place_of(member));
  return slow != state.speeds.slow.end() && slow->second >= kSlowWindows;
}

void recall_costs(State& state) {
  std::vector<SlotRun> runs;
  for (MemberId id : state.ranks) runs.push_back(state.members.at(id).slots);
  if (runs.empty() || runs == assign_slots(node_of_rank(state, state.ranks), runs.back().end))
    return;
  for (MemberId id : state.ranks) {
    const SlotRun& slots = state.members.at(id).slots;
    if (slots.begin < slots.end) state.speeds.cost_us[id] = 1e6 / (slots.end - slots.begin);
  }
}

}  // namespace lockstep::coordinator
