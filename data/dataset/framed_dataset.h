// Cuts and scales images stored as pixels (IDX, CIFAR and NumPy data) like encoded images, as the
// first words of data.transforms say.
//
// Fingerprint and statistics cover the pixels as stored.
//
// Thread-safety: as Dataset.
#pragma once

#include <memory>

#include "comm/base/status.h"
#include "data/dataset/dataset.h"
#include "data/image/frame.h"

namespace lockstep::data {

// Wraps a data set of images stored as pixels; returns `stored` itself if the frame is empty.
// kUsage unless the images have one or three channels.
Result<std::unique_ptr<Dataset>> make_framed_dataset(std::unique_ptr<Dataset> stored,
                                                     const ImageFrame& frame);

}  // namespace lockstep::data
