#include "data/read/read_range.h"

#include "comm/base/check.h"

namespace lockstep::data {

void read_range(const Dataset& dataset, const Transform& transform, uint64_t begin, uint64_t end,
                float* images, int64_t* labels) {
  LOCKSTEP_CHECK(begin <= end && end <= dataset.samples(), "range beyond the dataset");
  const SampleShape shape = dataset.shape();
  for (uint64_t i = begin; i < end; ++i) {
    transform.apply(dataset.sample(i), shape, images);
    images += shape.elements();
    *labels++ = dataset.label(i);
  }
}

}  // namespace lockstep::data
