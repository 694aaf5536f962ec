#include "data/doctor/windows.h"

#include <utility>

namespace lockstep::doctor {

Result<Rate> Windows::measure(const PartFn& part) {
  const auto window_ns = static_cast<int64_t>(plan_.window_s * 1e9);
  const double most_ns = plan_.window_s * 1e9 * plan_.windows;
  const int64_t first_ns = now_ns();
  std::vector<double> rates;
  int64_t begin_ns = first_ns;
  const auto goes_on = [&] {
    const bool has_time = static_cast<double>(begin_ns - first_ns) < most_ns && !plan_.is_over();
    return rates.empty() || (rates.size() < plan_.windows && has_time);
  };
  while (goes_on()) {
    uint64_t samples = 0;
    int64_t end_ns = begin_ns;
    while (end_ns == begin_ns || (end_ns - begin_ns < window_ns && !plan_.is_over())) {
      LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t done, part());
      samples += done;
      end_ns = now_ns();
    }
    rates.push_back(static_cast<double>(samples) * 1e9 / static_cast<double>(end_ns - begin_ns));
    begin_ns = end_ns;
  }
  return rate_of(std::move(rates));
}

}  // namespace lockstep::doctor
