// The data plane as memory: the data that a worker process publishes, and that its peers read.
//
// As in the real data plane, no process writes another's memory, every flag has one writer, and
// memory refuses no late reader: data that is rewritten too early is read torn.
//
//   Segment (one per process)   partials and slices of each bucket, each with the tag of its
//                               collective; counts of what its owner has read; closed flag
//   Fabric                      finds segments by (generation, member), tells all of changes,
//                               breaks links in one or both directions, and says what has broken
//
// Thread-safety: one thread.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/base/ids.h"
#include "comm/run/evaluation/eval_track.h"
#include "tests/sim/world/reference.h"

namespace lockstep::sim {

// Identifies a collective by generation and step. Ordered within a generation.
struct Tag {
  Generation generation = 0;
  uint64_t number = 0;  // of the collective in this generation, the same on every rank
  auto operator<=>(const Tag&) const = default;
};

// A rank's rider in the last bucket.
struct Votes {
  bool stop = false;
  bool change = false;
  bool finish = false;
};

struct Segment {
  struct Partial {
    Tag tag;
    std::map<uint32_t, std::array<uint64_t, kElements>> slots;
    std::map<uint32_t, uint64_t> digests;  // by slot; with the last bucket
    Votes votes;                           // with the last bucket
  };
  struct Slice {
    Tag tag;
    std::map<uint32_t, uint64_t> sums;  // by element
  };
  struct StateCopy {
    Tag tag;
    ResumePoint at;
    std::array<uint64_t, 2> halves{};
    uint64_t hash = 0;
    EvalTrack track;
  };

  std::string process;
  bool is_alive = true;  // the process lives; its memory stays while a peer maps it
  Generation closed_through = 0;
  Generation has_met_all_of = 0;  // the newest generation of which it is connected to all

  std::array<Partial, kBuckets> partials;
  std::array<Slice, kBuckets> slices;
  std::array<Tag, kBuckets> read;       // everything of every peer, by bucket
  std::array<Tag, kBuckets> sums_read;  // every peer's slices
  StateCopy copy;                       // a state source's
  Tag barrier;
};

class Fabric {
 public:
  using Poke = std::function<void()>;

  // `poke` runs at every change, until left() or the end of the process.
  void attach(const std::shared_ptr<Segment>& segment, Poke poke);
  void detach(const std::shared_ptr<Segment>& segment);

  // This process wants to be `member` of `generation`.
  void join(Generation generation, MemberId member, const std::shared_ptr<Segment>& segment);
  // Null until that member has joined.
  std::shared_ptr<Segment> find(Generation generation, MemberId member) const;

  // The link between two processes fails for good, and both see it.
  void cut(const std::string& a, const std::string& b);
  bool is_cut(const std::string& a, const std::string& b) const;
  // From now on nothing that `from` writes reaches `to`, and no process hears of it. `to` still
  // sees the old data. No new connection between the two works, because a handshake needs both
  // directions.
  void cut_one_way(const std::string& from, const std::string& to);
  bool can_connect(const std::string& a, const std::string& b) const;
  const Segment& seen_by(const std::string& reader, const Segment& segment) const;

  // Something changed that a process may wait for.
  void changed() const;

 private:
  std::map<std::pair<Generation, MemberId>, std::shared_ptr<Segment>> joined_;
  std::map<std::string, Poke> pokes_;
  std::map<std::string, std::shared_ptr<Segment>> segments_;  // by process
  std::set<std::pair<std::string, std::string>> cuts_;
  std::map<std::pair<std::string, std::string>, Segment> frozen_;  // by writer and reader
};

}  // namespace lockstep::sim
