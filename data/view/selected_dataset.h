// A part of a data set, as a data set of its own. Training and evaluation see a part if some
// samples are held out, or if the job uses only a share.
//
// If the data set keeps documents apart, whole documents are selected, before they are cut, put in
// order or packed. The selection depends only on the tokens, the ends of documents, the shares and
// the seed. In all other data sets, samples are selected. They are numbered from 0 in the order of
// the selection.
//
// A part keeps the files, shape, format, classes, class names and statistics of the whole. A label
// may be missing in a small part, but means the same in all parts. With the same statistics, two
// selections of one data set are normalised alike. The fingerprint combines the fingerprint of the
// whole and everything that the selection depends on.
//
// Thread-safety: as a Dataset.
#pragma once

#include <memory>

#include "comm/base/status.h"
#include "data/dataset/dataset.h"

namespace lockstep::data {

struct SelectionSpec {
  double held_out = 0;  // shares of one
  double kept = 1;      // of the rest, without what is held out
  uint64_t seed = 0;    // another seed selects other samples

  bool takes_all() const { return held_out == 0 && kept == 1; }
};

// Selects the kept share of the samples that are not held out. Returns `whole` itself if these are
// all samples. kUsage if no sample is left.
Result<std::unique_ptr<Dataset>> select_kept(std::unique_ptr<Dataset> whole,
                                             const SelectionSpec& spec);

struct TwoParts {
  std::unique_ptr<Dataset> kept;
  std::unique_ptr<Dataset> held_out;
};
// Both parts; kUsage if one of them has no sample. REQUIRES: spec.held_out > 0.
Result<TwoParts> split(std::unique_ptr<Dataset> whole, const SelectionSpec& spec);

}  // namespace lockstep::data
