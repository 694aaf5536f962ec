#include "coordinator/state/script_end.h"

#include <cstdlib>
#include <cstring>

#include "coordinator/journal/journal_entry.h"

namespace lockstep::coordinator {
namespace {

constexpr char kOf[] = " of ";

}  // namespace

std::string text_of(const ScriptEnd& end) {
  return std::to_string(end.step) + kOf + std::to_string(end.planned);
}

std::optional<ScriptEnd> script_end_in(const std::map<std::string, std::string>& settings) {
  const auto found = settings.find(kEndSetting);
  if (found == settings.end()) return std::nullopt;
  char* rest = nullptr;
  ScriptEnd end;
  end.step = std::strtoull(found->second.c_str(), &rest, 10);
  if (end.step == 0 || std::strncmp(rest, kOf, sizeof kOf - 1) != 0) return std::nullopt;
  end.planned = std::strtoull(rest + sizeof kOf - 1, nullptr, 10);
  return end;
}

}  // namespace lockstep::coordinator
