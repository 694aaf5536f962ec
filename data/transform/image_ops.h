// What can be done to an image of bytes, (C, H, W). Nothing here is random.
//
// Thread-safety: pure functions of what they are given.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::data {

struct ImageBytes {
  uint8_t* data;
  uint32_t channels;
  uint32_t height;
  uint32_t width;

  uint64_t plane() const { return uint64_t{height} * width; }
};

// (H, W, C) to (C, H, W). The two do not overlap.
void copy_channels_first(const uint8_t* stored, const ImageBytes& out);

void mirror(const ImageBytes& image);             // left to right
void mirror_vertically(const ImageBytes& image);  // top to bottom

// out(y, x) = in(y + dy, x + dx); black where that is outside. Same sizes, not overlapping.
void shift(const ImageBytes& in, int64_t dy, int64_t dx, const ImageBytes& out);

// Around the middle, counter-clockwise by the angle whose cosine and sine are given times 2^16.
// Between four pixels by their distances (bilinear, in steps of 1/256); outside is black.
void rotate(const ImageBytes& in, int64_t cosine, int64_t sine, const ImageBytes& out);

// Every value x becomes m + factor (x - m), rounded to the nearest and bounded, where m is 0, the
// mean of the image's grey, or the grey of the pixel. The grey of three channels is 0.299 R +
// 0.587 G + 0.114 B (ITU-R BT.601), of any other number their mean.
void scale_brightness(const ImageBytes& image, float factor);
void scale_contrast(const ImageBytes& image, float factor);
void scale_saturation(const ImageBytes& image, float factor);

// The hue of every pixel is turned on by `turn`, in sixths of the circle times 2^16: red becomes
// yellow after one, green after two. The largest and the smallest channel of a pixel stay as large,
// and so do value and saturation; the one between is exact, rounded to the nearest. That is
// torchvision's adjust_hue() of tensors, but for what that rounds down; its other one, of Pillow's
// images, rounds hue and saturation to bytes on the way, and is up to 18 of 255 away from both.
// REQUIRES: three channels, |turn| <= 3 * 2^16.
void turn_hue(const ImageBytes& image, int64_t turn);

// The part of the square from (y, x) that lies in the image becomes `values`, one by channel.
void fill_square(const ImageBytes& image, int64_t y, int64_t x, int64_t side,
                 std::span<const uint8_t> values);

}  // namespace lockstep::data
