#include "data/loader/job_order.h"

#include "comm/run/plan/job_shuffle.h"

namespace lockstep::data {

OrderSpec job_order(const wire::JobSpec& job, const Dataset& train) {
  return {job.seed(),
          train.fingerprint(),
          epoch_units(train),
          block_shuffle(job.data()),
          job.data().length_classes(),
          train.parts()};
}

}  // namespace lockstep::data
