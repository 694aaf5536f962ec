#include "data/doctor/measurements.h"

#include <algorithm>

#include "comm/base/check.h"

namespace lockstep::doctor {

Rate rate_of(std::vector<double> windows) {
  LOCKSTEP_CHECK(!windows.empty(), "a rate of no window");
  std::sort(windows.begin(), windows.end());
  const size_t middle = windows.size() / 2;
  const double median =
      windows.size() % 2 == 1 ? windows[middle] : (windows[middle - 1] + windows[middle]) / 2;
  return {median, windows.front(), windows.back(), static_cast<uint32_t>(windows.size())};
}

std::string_view rung_name(RungKind kind) {
  constexpr std::string_view kNames[kRungKinds] = {
      "raw_cold",    "raw",    "decode",  "samples",
      "loader_cold", "loader", "trainer", "trainer_resident"};
  return kNames[static_cast<size_t>(kind)];
}

const Rung* Measurements::find(RungKind kind) const {
  const auto at = std::find_if(rungs.begin(), rungs.end(),
                               [kind](const Rung& rung) { return rung.kind == kind; });
  return at == rungs.end() ? nullptr : &*at;
}

const Rung& Measurements::loader() const {
  const Rung* cold = find(RungKind::kLoaderCold);
  return cold != nullptr ? *cold : *find(RungKind::kLoader);
}

}  // namespace lockstep::doctor
