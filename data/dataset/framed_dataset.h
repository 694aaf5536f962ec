// Images that are stored as pixels, cut and scaled like those that are encoded: the first words of
// data.transforms, of IDX, CIFAR and NumPy data.
//
// Fingerprint and statistics are those of the pixels as they are stored.
//
// Thread-safety: as Dataset.
#pragma once

#include <memory>

#include "comm/base/status.h"
#include "data/dataset/dataset.h"
#include "data/image/frame.h"

namespace lockstep::data {

// Of a data set of images that are stored as pixels; itself where the frame is empty. kUsage for
// other than one or three channels.
Result<std::unique_ptr<Dataset>> make_framed_dataset(std::unique_ptr<Dataset> stored,
                                                     const ImageFrame& frame);

}  // namespace lockstep::data
