#include "coordinator/state/node_names.h"

namespace lockstep::coordinator {

NodeNames::Given NodeNames::give(const std::string& name, const std::string& machine,
                                 const std::function<bool(const std::string&)>& is_vacant) {
  if (machine.empty()) return {name, false};
  std::string vacant;
  for (size_t number = 1;; ++number) {
    const std::string node = number == 1 ? name : name + "~" + std::to_string(number);
    const auto known = machines_.find(node);
    if (known != machines_.end() && known->second == machine) return {node, false};
    const bool is_free = known == machines_.end();
    if (vacant.empty() && (is_free || is_vacant(node))) vacant = node;
    if (!is_free) continue;
    machines_[vacant] = machine;
    return {vacant, true};
  }
}

}  // namespace lockstep::coordinator
