// Keeps machines apart that have one name: containers with the host name of their image, cloned
// virtual machines. The first machine has the name for itself, the next ones are NAME~2, NAME~3,
// ... All other parts of the coordinator know a node by its name here alone.
//
// Thread-safety: a value.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace lockstep::coordinator {

class NodeNames {
 public:
  struct Given {
    std::string node;
    bool is_news = false;  // the machine did not have it before
  };

  // The name of the machine that calls itself `name`. A machine that comes again has the name that
  // it had. Another one gets the first name that is free, or whose machine is gone for `is_vacant`:
  // a container that was made again is another machine. `machine` is machine_id()
  // (comm/base/host_name.h); an empty one is not told from others.
  Given give(const std::string& name, const std::string& machine,
             const std::function<bool(const std::string& node)>& is_vacant);

  // Takes over a name that an earlier coordinator of the run has given.
  void restore(const std::string& node, const std::string& machine) { machines_[node] = machine; }

 private:
  std::map<std::string, std::string> machines_;  // by node
};

}  // namespace lockstep::coordinator
