// Says which connection makes room when too many have not proven themselves: not the newcomer, but
// one from the address that sends most of them. So a flood from one machine pushes out its own.
//
// An address from which a caller has proven itself is one of the run's own, and counts a quarter:
// it gives way last, unless it is the one that floods.
//
// Thread-safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace lockstep {

// "127.0.0.1" of "127.0.0.1:51234", "[::1]" of "[::1]:51234".
std::string_view host_of(std::string_view peer);

// Ids grow with time.
class Crowd {
 public:
  using Id = uint64_t;

  // `source`: the address without a port.
  void add(Id id, std::string_view source, int64_t now_ms);
  // Unknown ids are fine. `is_proven`: its address is one of the run's own from now on.
  void remove(Id id, bool is_proven = false);

  size_t size() const { return members_.size(); }
  bool empty() const { return members_.empty(); }

  // The oldest of the largest source. REQUIRES: not empty().
  Id first_to_go() const;

  // The same if its source has more than `fair` in the crowd; else the oldest of all if it came
  // before `since_ms`; else none: many machines that come at once each get their turn. REQUIRES:
  // not empty().
  std::optional<Id> overdue(size_t fair, int64_t since_ms) const;

 private:
  struct Member {
    std::string source;
    int64_t came_ms = 0;
  };
  const std::set<Id>& largest() const;

  std::map<Id, Member> members_;
  std::map<std::string, std::set<Id>, std::less<>> by_source_;
  std::set<std::string, std::less<>> own_;  // at most limits::kOwnAddresses
};

}  // namespace lockstep
