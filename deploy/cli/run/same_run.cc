#include "deploy/cli/run/same_run.h"

#include "coordinator/state/identity.h"

namespace lockstep {

using coordinator::check_identity;
using coordinator::identity_of;

Status check_same_run(const wire::JobSpec& stored, const wire::JobSpec& wanted) {
  const wire::DataFacts same;  // the data are compared when they have been read
  return check_identity(identity_of(stored, same), identity_of(wanted, same));
}

Status check_same_data(const wire::DataFacts& stored, const wire::DataFacts& found) {
  const wire::JobSpec same;
  return check_identity(identity_of(same, stored), identity_of(same, found));
}

}  // namespace lockstep
