// A part of a data set, as a data set of its own: what training and evaluation see where some of
// the samples are held out, or only a share is used.
//
// Where documents are kept apart, whole documents are selected, before they are cut, put in order
// or packed: which ones follows from the tokens, where documents end, the shares and the seed only.
// Everywhere else samples are; they are numbered from 0 in the order of the selection.
//
// Files, shape and format are those of the whole, and so are the classes and their names (a label
// may be missing in a small part, and means the same in all of them) and the statistics, so that
// two selections of one data set are normalised alike. The fingerprint is that of the whole, with
// all that the selection depends on.
//
// Thread-safety: as a Dataset.
#pragma once

#include <memory>

#include "comm/base/status.h"
#include "data/dataset/dataset.h"

namespace lockstep::data {

struct SelectionSpec {
  double held_out = 0;  // shares of one
  double kept = 1;      // of what is not held out
  uint64_t seed = 0;    // another one selects other samples

  bool takes_all() const { return held_out == 0 && kept == 1; }
};

// The samples that are not held out, by their share. `whole` as it is, where that is all of them.
// kUsage where no sample is left.
Result<std::unique_ptr<Dataset>> select_kept(std::unique_ptr<Dataset> whole,
                                             const SelectionSpec& spec);

struct TwoParts {
  std::unique_ptr<Dataset> kept;
  std::unique_ptr<Dataset> held_out;
};
// Both parts; kUsage where one of them has no sample. REQUIRES: spec.held_out > 0.
Result<TwoParts> split(std::unique_ptr<Dataset> whole, const SelectionSpec& spec);

}  // namespace lockstep::data
