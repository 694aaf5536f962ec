// Computes fingerprint and statistics of encoded samples.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "data/base/damaged_files.h"
#include "data/base/progress.h"
#include "data/dataset/content_hash.h"
#include "data/dataset/statistics.h"
#include "data/formats/images/encoded_files.h"
#include "data/formats/images/extent_index.h"
#include "data/image/image_decoder.h"
#include "data/source/far_files/remote_files.h"

namespace lockstep::data {

// With more samples than this, the fingerprint hashes the content of this many samples only. The
// choice is drawn from the number of samples (adr/0004).
inline constexpr uint64_t kSampledContents = 4'096;

// XXH3-128 over the number of samples, the class names, and for each sample the name of its file,
// its place, size and label; and over contents, all of them up to `whole_bytes`, of which it notes
// the marks (Extent::content). Names are relative to the data set's directory. `far` has the
// content of remote files.
Result<std::string> fingerprint_of(IndexContent& content, const std::string& directory,
                                   uint32_t threads, const ProgressFn& progress,
                                   uint64_t whole_bytes = kWholeContentBytes,
                                   source::RemoteFiles* far = nullptr);

// Sums over pixels as models see them, cut in the middle. Uses at most kStatisticsImages samples at
// equal distances. Tells `damaged` of all among them that cannot be decoded, by their numbers.
inline constexpr uint64_t kStatisticsImages = 1'024;
Result<std::vector<ChannelSums>> sums_of(const ExtentIndex& index, const EncodedFiles& files,
                                         const WantedImage& wanted, uint32_t threads,
                                         const ProgressFn& progress, DamagedFiles& damaged);

}  // namespace lockstep::data
