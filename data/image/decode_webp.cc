#include <webp/decode.h>

#include <string>

#include "data/base/file_errors.h"
#include "data/image/decode.h"

namespace lockstep::data {
namespace {

struct Config {
  WebPDecoderConfig config{};
  ~Config() { WebPFreeDecBuffer(&config.output); }
};

std::string webp_error(VP8StatusCode code) {
  if (code == VP8_STATUS_NOT_ENOUGH_DATA || code == VP8_STATUS_SUSPENDED) return "it is truncated";
  if (code == VP8_STATUS_UNSUPPORTED_FEATURE) return "it uses a feature that libwebp does not know";
  return "its bytes are damaged (libwebp's status " + std::to_string(static_cast<int>(code)) + ")";
}

}  // namespace

Result<ImageInfo> webp_info(std::span<const uint8_t> bytes) {
  WebPBitstreamFeatures features;
  const VP8StatusCode code = WebPGetFeatures(bytes.data(), bytes.size(), &features);
  if (code == VP8_STATUS_NOT_ENOUGH_DATA)
    return bad("is truncated: it ends before the size of the image");
  if (code != VP8_STATUS_OK)
    return bad("is a WebP image that cannot be decoded: " + webp_error(code));
  if (features.has_animation != 0)
    return bad("is a WebP animation, not one image; write the frame that you want as an image");
  return ImageInfo{ImageCodec::kWebp, static_cast<uint32_t>(features.width),
                   static_cast<uint32_t>(features.height), 3};
}

Status decode_webp(std::span<const uint8_t> encoded, const DecodeRequest& request,
                   DecodedPart& out) {
  Config holder;
  WebPDecoderConfig& config = holder.config;
  if (WebPInitDecoderConfig(&config) == 0)
    return {Code::kInternal, "libwebp has another version than its headers"};
  const size_t pixels = size_t{request.info.width} * request.info.height;
  out.box = {0, 0, request.info.width, request.info.height};
  out.shrink = 1;
  out.pixel_bytes = 4;
  out.bytes.resize(pixels * 4);
  config.output.colorspace = MODE_RGBA;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = out.bytes.data();
  config.output.u.RGBA.stride = static_cast<int>(4 * request.info.width);
  config.output.u.RGBA.size = out.bytes.size();
  const VP8StatusCode code = WebPDecode(encoded.data(), encoded.size(), &config);
  if (code != VP8_STATUS_OK)
    return bad("is a WebP image that cannot be decoded: " + webp_error(code));
  if (request.channels == 1) colours_to_grey(out);
  return Status::ok();
}

}  // namespace lockstep::data
