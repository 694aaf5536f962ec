#include "data/dataset/dataset.h"

#include "comm/base/check.h"

namespace lockstep::data {

Status Dataset::read_encoded(uint64_t, std::vector<uint8_t>&) const {
  return {Code::kInternal, "samples of format " + format() + " are not encoded"};
}

int64_t Dataset::make_sequence(uint64_t, int64_t*, int64_t*) const {
  LOCKSTEP_CHECK(false, "sequences that lie in files are not made");
  return 0;
}

std::unique_ptr<Dataset> Dataset::of_documents(const std::vector<bool>&, std::string) const {
  LOCKSTEP_CHECK(false, "documents are not kept apart");
  return nullptr;
}

uint64_t Dataset::counted_labels(uint64_t) const {
  return shape().labels();
}

uint64_t epoch_units(const Dataset& train) {
  return train.parts().empty() ? train.samples() : units_of(train.parts());
}

std::string Dataset::name_of(uint64_t i) const {
  return "sample " + std::to_string(i) + " of " + (files().empty() ? "the data" : files().front());
}

}  // namespace lockstep::data
