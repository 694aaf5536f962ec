#include "data/formats/images/indexed_masks.h"

#include <algorithm>
#include <utility>

#include "data/base/file_errors.h"
#include "data/formats/images/encoded_dataset.h"
#include "data/formats/images/stem_directory.h"

namespace lockstep::data {
namespace {

std::string sides_of(const Extent& extent) {
  return std::to_string(extent.width) + " x " + std::to_string(extent.height);
}

// Both are in the order of their stems.
Status check_stems(const EncodedSource& source, const ExtentIndex& images,
                   const std::string& mask_directory, const ExtentIndex& masks) {
  const auto name_in = [](const ExtentIndex& index, uint64_t i) {
    return i < index.samples() ? index.file_name(index.extent(i).file) : std::string_view();
  };
  for (uint64_t i = 0; i < std::max(images.samples(), masks.samples()); ++i) {
    const std::string_view image = name_in(images, i);
    const std::string_view mask = name_in(masks, i);
    if (stem_of(image) == stem_of(mask)) continue;
    const bool is_image = mask.empty() || (!image.empty() && stem_of(image) < stem_of(mask));
    const std::string& here = is_image ? source.directory : mask_directory;
    const std::string& there = is_image ? mask_directory : source.directory;
    const std::string_view name = is_image ? image : mask;
    return bad(here + "/" + std::string(name) + " is " +
               (is_image ? "an image without a mask: " : "a mask without an image: ") + there +
               " has no " + std::string(stem_of(name)) + (is_image ? ".png" : " of any ending") +
               "; add it, or move the " + (is_image ? "image" : "mask") + " to another directory");
  }
  return Status::ok();
}

}  // namespace

Result<std::shared_ptr<const IndexedMasks>> IndexedMasks::open(const EncodedSource& source,
                                                               size_t which,
                                                               const ExtentIndex& images,
                                                               const std::string& cache_dir,
                                                               const ProgressFn& progress) {
  const EncodedSource& mask = source.masks[which];
  Status joined;
  // Overwriting a file does not change its directory, so the index does not notice. Looks again if
  // masks do not fit.
  for (const IndexUse use : {IndexUse::kValid, IndexUse::kMakeAnew}) {
    LOCKSTEP_ASSIGN_OR_RETURN(ExtentIndex index, open_index(mask, cache_dir, progress, use));
    const std::shared_ptr<const IndexedMasks> masks(new IndexedMasks(mask, std::move(index)));
    joined = source.joins_by_stem ? check_stems(source, images, mask.directory, masks->index_)
                                  : Status::ok();
    if (joined.is_ok()) joined = masks->check_join(source, images);
    if (joined.is_ok()) return masks;
  }
  return joined;
}

Status IndexedMasks::check_join(const EncodedSource& source, const ExtentIndex& images) const {
  if (index_.samples() != images.samples())
    return bad(source.shown_directory + " changed while Lockstep indexed it: it has " +
               std::to_string(images.samples()) + " images and " +
               std::to_string(index_.samples()) + " masks; start again when it is complete");
  const EncodedFiles files(images, source.directory, source.far, source.copied);
  for (uint64_t i = 0; i < index_.samples(); ++i) {
    const Extent& image = images.extent(i);
    const Extent& mask = index_.extent(i);
    if (image.width == mask.width && image.height == mask.height) continue;
    return bad(name_of(i) + " is a mask of " + sides_of(mask) + " pixels, but its image " +
               files.name_of(image) + " has " + sides_of(image) + "; bring both to one size");
  }
  return Status::ok();
}

}  // namespace lockstep::data
