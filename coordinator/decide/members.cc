// Questions about members that several parts of decide() ask.
#include <algorithm>
#include <cctype>
#include <string_view>
#include <tuple>

#include "comm/base/planted_bug.h"
#include "comm/collectives/node_levels.h"
#include "coordinator/decide/decide_internal.h"

namespace lockstep::coordinator {
namespace {

size_t digits_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  return end - at;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const size_t m = digits_at(a, i);
    const size_t n = digits_at(b, j);
    if (m == 0 || n == 0) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    std::string_view x = a.substr(i, m);
    std::string_view y = b.substr(j, n);
    x.remove_prefix(std::min(x.find_first_not_of('0'), x.size()));
    y.remove_prefix(std::min(y.find_first_not_of('0'), y.size()));
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
    i += m;
    j += n;
  }
  if ((i < a.size()) != (j < b.size())) return i >= a.size();
  return a < b;
}

std::pair<std::string, std::string> split_line(const std::string& text) {
  const size_t line_end = std::min(text.find('\n'), text.size());
  return {text.substr(0, line_end), text.substr(line_end)};
}

bool is_open(RunState run) {
  return run == RunState::kPrepared || run == RunState::kStarted;
}

bool is_listed(const State& state, const Member& member) {
  return is_open(state.run) && member.listed == state.generation;
}

bool is_source(const State& state, const Member& member) {
  return state.source_generation != 0 && member.placed == state.source_generation;
}

bool is_alive(const Member& member) {
  return member.state != MemberState::kDead && member.state != MemberState::kGone;
}

bool is_expelled(const State& state, const Member& member) {
  return state.checks.expelled.contains(place_of(member));
}

bool contains(const std::vector<MemberId>& members, MemberId id) {
  return std::find(members.begin(), members.end(), id) != members.end();
}

bool is_verdict(int exit_code) {
  return exit_code == 64 || exit_code == 65 || exit_code == 66 || exit_code == 78;
}

bool is_in_lineage(const State& state, Generation generation, Step step) {
  const auto era = state.lineage.find(generation);
  return era != state.lineage.end() && lineage_contains({era->second.row}, generation, step);
}

void forget_process(State& state, const Member& member) {
  const auto process = state.by_process.find({member.node, member.pid});
  if (process != state.by_process.end() && process->second == member.id) {
    state.by_process.erase(process);
  }
}

bool is_other_process(uint64_t a, uint64_t b) {
  return a != 0 && b != 0 && a != b;
}

std::string node_of(Turn& turn, const std::string& name, const std::string& machine) {
  State& state = turn.state;
  // A member that an earlier coordinator knew has time to come back.
  const bool may_come_back = turn.now_ms - state.started_ms <= turn.options.lease_ms;
  const auto is_vacant = [&](const std::string& node) {
    return !may_come_back && !has_agent(state, node) &&
           std::none_of(state.members.begin(), state.members.end(), [&](const auto& entry) {
             return entry.second.node == node && entry.second.connection != 0;
           });
  };
  const NodeNames::Given given = state.node_names.give(name, machine, is_vacant);
  if (!given.is_news || name.empty()) return given.node;
  turn.persist(SettingEntry{kNodeSetting + given.node, machine});
  if (given.node != name)
    turn.note(LogLine::Level::kWarn, "same_node_name",
              "two machines of this run are called " + name + ": the second one is " + given.node +
                  " here. Give each a name of its own (LOCKSTEP_NODE, or lockstep agent --node)");
  return given.node;
}

bool may_join(const Turn& turn, const Member& member) {
  if (!is_alive(member) || member.connection == 0 || member.is_draining) return false;
  if (is_expelled(turn.state, member) && !LOCKSTEP_BUG(kExpelledGoesOn)) return false;
  const auto& barred = turn.state.experience.barred;
  const auto bar = barred.find(place_of(member));
  return bar == barred.end() || turn.now_ms >= bar->second.until_ms;
}

bool can_be_suspected(const State& state, const Member& member) {
  return is_alive(member) && (is_listed(state, member) || state.leavers.contains(member.id));
}

bool keeps_none(const State& state, const std::string& node) {
  const auto kept = state.workers_of_node.find(node);
  return kept != state.workers_of_node.end() && kept->second == 0;
}

bool has_agent(const State& state, const std::string& node) {
  return std::any_of(state.agents.begin(), state.agents.end(),
                     [&](const auto& entry) { return entry.second.node == node; });
}

void sort_naturally(const State& state, std::vector<MemberId>& members) {
  std::sort(members.begin(), members.end(), [&](MemberId a, MemberId b) {
    const Member& x = state.members.at(a);
    const Member& y = state.members.at(b);
    if (x.node != y.node) return natural_less(x.node, y.node);
    return std::tie(x.local_rank, x.id) < std::tie(y.local_rank, y.id);
  });
}

std::vector<uint32_t> node_of_rank(const State& state, const std::vector<MemberId>& ranks) {
  std::vector<std::string_view> hosts;
  for (const MemberId id : ranks) hosts.push_back(state.members.at(id).data.host_id());
  return number_nodes(hosts);
}

std::string describe(const State& state, const Member& member) {
  const bool has_rank = is_source(state, member);
  return "worker " +
         (has_rank ? "of rank " + std::to_string(member.rank) : std::to_string(member.local_rank)) +
         " (member " + std::to_string(member.id) + ", node " + member.node + ", pid " +
         std::to_string(member.pid) + ")";
}

std::string describe(const State& state, const std::vector<MemberId>& members) {
  constexpr size_t kNamed = 8;
  std::string names;
  for (size_t i = 0; i < std::min(members.size(), kNamed); ++i) {
    names += (names.empty() ? "" : ", ") + describe(state, state.members.at(members[i]));
  }
  if (members.size() > kNamed) {
    names += " and " + std::to_string(members.size() - kNamed) + " others";
  }
  return names;
}

bool is_valid(const wire::ResumePoint& point, const Options& options) {
  return is_phase(point.phase()) && point.step() <= options.total_steps;
}

void detach(Turn& turn, Member& member) {
  if (member.connection == 0) return;
  turn.state.by_connection.erase(member.connection);
  turn.actions.push_back(CloseConnection{member.connection});
  member.connection = 0;
  member.disconnected_ms = turn.now_ms;
}

}  // namespace lockstep::coordinator
