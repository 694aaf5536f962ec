#include "data/image/image_decoder.h"

#include <string>

#include "data/base/file_errors.h"
#include "data/image/decode.h"
#include "data/image/raw_image.h"
#include "data/image/take_nearest.h"

namespace lockstep::data {
namespace {

// The largest reduction that leaves as many pixels as are wanted. Half, a quarter and an eighth are
// cheap to decode; resample() does the rest.
uint32_t shrink_of(const ImageInfo& info, const FrameCut& cut) {
  if (info.codec != ImageCodec::kJpeg) return 1;
  uint32_t shrink = 8;
  while (shrink > 1 && (cut.box.width < cut.width * shrink || cut.box.height < cut.height * shrink))
    shrink /= 2;
  return shrink;
}

// Which pixels [first, end) of the image the window needs on one axis.
void needed(uint32_t box_at, uint32_t box_length, uint32_t scaled, uint32_t first, uint32_t count,
            uint32_t shrink, uint32_t& at, uint32_t& length) {
  const double scale = static_cast<double>(box_length) / scaled;
  const double reach = scale > shrink ? scale : shrink;  // of a weight, either way
  const double begin = first * scale - reach - shrink;
  const double end = (first + count) * scale + reach + shrink;
  const auto from = begin > 0 ? static_cast<uint32_t>(begin) : 0;
  const uint32_t to = end < box_length ? static_cast<uint32_t>(end) + 1 : box_length;
  at = box_at + from;
  length = std::min(to, box_length) - from;
}

PixelBox needed_of(const FrameCut& cut, uint32_t shrink) {
  PixelBox box;
  needed(cut.box.x, cut.box.width, cut.width, cut.window.x, cut.window.width, shrink, box.x,
         box.width);
  needed(cut.box.y, cut.box.height, cut.height, cut.window.y, cut.window.height, shrink, box.y,
         box.height);
  return box;
}

FrameCut as_it_is(const WantedImage& form) {
  const PixelBox all{0, 0, form.width, form.height};
  return {all, form.width, form.height, all};
}

Result<FrameCut> cut_for(const ImageInfo& info, const WantedImage& form,
                         std::optional<uint64_t> stream) {
  if (!form.frame.is_empty()) return cut_of(form.frame, info.width, info.height, stream);
  if (info.width == form.width && info.height == form.height) return as_it_is(form);
  return bad("is an image of " + std::to_string(info.width) + " x " + std::to_string(info.height) +
             " pixels, the others have " + std::to_string(form.width) + " x " +
             std::to_string(form.height));
}

}  // namespace

Status ImageDecoder::decode(std::span<const uint8_t> encoded, const WantedImage& form,
                            std::optional<uint64_t> stream, uint8_t* out) {
  const bool is_raw = is_raw_image(encoded);
  LOCKSTEP_ASSIGN_OR_RETURN(const ImageInfo info,
                            is_raw ? raw_image_info(encoded) : read_image_info(encoded));
  LOCKSTEP_ASSIGN_OR_RETURN(const FrameCut cut, cut_for(info, form, stream));
  DecodeRequest request{info, {}, shrink_of(info, cut), form.channels};
  request.box = needed_of(cut, request.shrink);
  LOCKSTEP_RETURN_IF_ERROR(is_raw ? decode_raw_image(encoded, request, part_)
                                  : data::decode(encoded, request, part_));
  const double shrink = part_.shrink;
  const AxisSpec x{cut.box.x / shrink - part_.box.x, cut.box.width / shrink, cut.width,
                   cut.window.x, cut.window.width};
  const AxisSpec y{cut.box.y / shrink - part_.box.y, cut.box.height / shrink, cut.height,
                   cut.window.y, cut.window.height};
  resample(part_, x, y, scratch_, out);
  return Status::ok();
}

Status ImageDecoder::decode_mask(std::span<const uint8_t> encoded, const WantedImage& form,
                                 std::optional<uint64_t> stream, uint8_t* out) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ImageInfo info, read_mask_info(encoded));
  LOCKSTEP_ASSIGN_OR_RETURN(const FrameCut cut, cut_for(info, form, stream));
  const DecodeRequest request{
      .info = info, .box = cut.box, .shrink = 1, .channels = 1, .as_values = true};
  LOCKSTEP_RETURN_IF_ERROR(decode_png(encoded, request, part_));
  take_nearest(part_, cut, out);
  return Status::ok();
}

}  // namespace lockstep::data
