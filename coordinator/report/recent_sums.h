// Sums over the last ten seconds and the last minute, in bounded memory: what a live figure shows,
// so that it follows what happens now and does not carry hours that are over.
//
// INVARIANTS
//  W1 A window covers its span and at most a fifth more: it consists of whole parts.
//  W2 Time that passes without anything counts: a rate falls while a run stands still.
//
// Thread-safety: one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::coordinator {

enum class Span : size_t { kTenSeconds, kMinute };
inline constexpr std::array<Span, 2> kSpans = {Span::kTenSeconds, Span::kMinute};
inline constexpr std::array<const char*, kSpans.size()> kSpanNames = {"10s", "60s"};

// Sum has add(const Sum&), and is zero when it is made.
template <typename Sum>
class RecentSums {
 public:
  // `now_ms` never decreases.
  void add(int64_t now_ms, const Sum& sum) {
    if (first_ms_ < 0) first_ms_ = now_ms;
    for (const Span span : kSpans) {
      Part& part = parts_of(span)[slot_of(span, now_ms)];
      const int64_t number = now_ms / part_ms(span);
      if (part.number != number) part = {number, Sum()};
      part.sum.add(sum);
    }
  }

  Sum of(Span span, int64_t now_ms) const {
    Sum all;
    const int64_t number = now_ms / part_ms(span);
    for (const Part& part : parts_[static_cast<size_t>(span)])
      if (part.number >= 0 && part.number <= number && part.number >= number - kParts)
        all.add(part.sum);
    return all;
  }

  // How long a time of() covers.
  double seconds(Span span, int64_t now_ms) const {
    if (first_ms_ < 0) return 0;
    const int64_t begin_ms = (now_ms / part_ms(span) - kParts) * part_ms(span);
    return static_cast<double>(now_ms - std::max(begin_ms, first_ms_)) / 1e3;
  }

 private:
  static constexpr int64_t kParts = 5;
  struct Part {
    int64_t number = -1;  // counted from the clock's zero
    Sum sum;
  };
  using Parts = std::array<Part, kParts + 1>;

  static int64_t part_ms(Span span) {
    constexpr std::array<int64_t, kSpans.size()> kMs = {10'000 / kParts, 60'000 / kParts};
    return kMs[static_cast<size_t>(span)];
  }
  static size_t slot_of(Span span, int64_t now_ms) {
    return static_cast<size_t>(now_ms / part_ms(span) % (kParts + 1));
  }
  Parts& parts_of(Span span) { return parts_[static_cast<size_t>(span)]; }

  std::array<Parts, kSpans.size()> parts_;
  int64_t first_ms_ = -1;
};

}  // namespace lockstep::coordinator
