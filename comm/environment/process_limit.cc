#include "comm/environment/process_limit.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <system_error>

#include "comm/base/status.h"
#include "comm/environment/standard_streams.h"

namespace lockstep {
namespace {

[[noreturn]] void end_with_reason() {
  try {
    if (const auto error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      print_error("cannot start a thread: %s; %s\n", error.what(), kRaiseProcessLimit);
      std::_Exit(exit_code({Code::kInternal, ""}));
    }
  } catch (...) {  // the verbose handler names it
  }
  __gnu_cxx::__verbose_terminate_handler();
  std::abort();
}

}  // namespace

void explain_missing_threads() {
  std::set_terminate(end_with_reason);
}

}  // namespace lockstep
