#include "data/formats/tokens/best_fit.h"

#include <utility>

#include "data/base/room_set.h"

namespace lockstep::data {
namespace {

constexpr uint32_t kNoPack = ~uint32_t{0};

// Where the pieces of each length begin in the order of lengths. The last entry is the end.
std::vector<uint32_t> begins_of_lengths(std::span<const uint32_t> lengths, uint32_t room) {
  std::vector<uint32_t> begins(uint64_t{room} + 2);
  for (const uint32_t length : lengths) ++begins[length + 1];
  for (uint64_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  return begins;
}

std::vector<uint32_t> sorted(std::span<const uint32_t> lengths, std::vector<uint32_t> begins) {
  std::vector<uint32_t> order(lengths.size());
  for (uint32_t i = 0; i < lengths.size(); ++i) order[begins[lengths[i]]++] = i;
  return order;
}

// Packs that are not full: a queue of packs for each amount of room left.
class OpenPacks {
 public:
  explicit OpenPacks(uint32_t room) : rooms_(room), ends_(uint64_t{room} + 1) {}

  // Puts a piece into a pack, and returns the pack.
  uint32_t put(uint32_t length, uint32_t room) {
    uint32_t pack = kNoPack;
    uint32_t left = room - length;
    if (const auto least = rooms_.least_from(length)) {
      pack = take(static_cast<uint32_t>(*least));
      left = static_cast<uint32_t>(*least) - length;
    } else {
      pack = static_cast<uint32_t>(next_.size());
      next_.push_back(kNoPack);
    }
    if (left > 0) add(pack, left);
    return pack;
  }
  uint64_t packs() const { return next_.size(); }

 private:
  struct Ends {
    uint32_t first = kNoPack;
    uint32_t last = kNoPack;
  };

  uint32_t take(uint32_t room) {
    Ends& queue = ends_[room];
    const uint32_t pack = queue.first;
    queue.first = next_[pack];
    if (queue.first == kNoPack) rooms_.erase(room);
    return pack;
  }
  void add(uint32_t pack, uint32_t room) {
    Ends& queue = ends_[room];
    next_[pack] = kNoPack;
    if (queue.first == kNoPack) {
      queue.first = pack;
      rooms_.insert(room);
    } else {
      next_[queue.last] = pack;
    }
    queue.last = pack;
  }

  RoomSet rooms_;               // that some pack has left
  std::vector<Ends> ends_;      // by room
  std::vector<uint32_t> next_;  // in the queue of a pack's room
};

}  // namespace

Packs best_fit(std::span<const uint32_t> lengths, uint32_t room) {
  std::vector<uint32_t> pack_of(lengths.size());
  uint64_t packs = 0;
  {
    const std::vector<uint32_t> begins = begins_of_lengths(lengths, room);
    const std::vector<uint32_t> order = sorted(lengths, begins);
    OpenPacks open(room);
    for (uint32_t length = room; length > 0; --length)
      for (uint32_t i = begins[length]; i < begins[length + 1]; ++i)
        pack_of[order[i]] = open.put(length, room);
    packs = open.packs();
  }
  Packs out;
  out.begins.resize(packs + 1);
  for (const uint32_t pack : pack_of) ++out.begins[pack + 1];
  for (uint64_t i = 1; i <= packs; ++i) out.begins[i] += out.begins[i - 1];
  out.pieces.resize(lengths.size());
  std::vector<uint32_t> next(out.begins.begin(), out.begins.end() - 1);
  for (uint32_t i = 0; i < lengths.size(); ++i) out.pieces[next[pack_of[i]]++] = i;
  return out;
}

std::vector<uint32_t> by_length(std::span<const uint32_t> lengths, uint32_t room) {
  return sorted(lengths, begins_of_lengths(lengths, room));
}

}  // namespace lockstep::data
