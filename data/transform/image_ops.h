// Operations on an image of bytes, (C, H, W). Nothing here is random.
//
// Thread-safety: pure functions of their arguments.
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

// Copies (H, W, C) to (C, H, W). REQUIRES: the two do not overlap.
void copy_channels_first(const uint8_t* stored, const ImageBytes& out);

void mirror(const ImageBytes& image);             // left to right
void mirror_vertically(const ImageBytes& image);  // top to bottom

// out(y, x) = in(y + dy, x + dx); black outside of `in`. REQUIRES: same sizes, not overlapping.
void shift(const ImageBytes& in, int64_t dy, int64_t dx, const ImageBytes& out);

// Rotates around the middle, counter-clockwise. `cosine` and `sine` of the angle are given times
// 2^16. Interpolates between four pixels by their distances (bilinear, in steps of 1/256); outside
// is black.
void rotate(const ImageBytes& in, int64_t cosine, int64_t sine, const ImageBytes& out);

// The same for a mask, whose values must not be mixed: takes the nearest pixel; outside is 0.
void rotate_nearest(const ImageBytes& in, int64_t cosine, int64_t sine, const ImageBytes& out);

// Every value x becomes m + factor (x - m), rounded to the nearest and bounded. m is 0 for
// brightness, the mean of the image's grey for contrast, and the grey of the pixel for saturation.
// The grey of three channels is 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601); for other numbers of
// channels it is their mean.
void scale_brightness(const ImageBytes& image, float factor);
void scale_contrast(const ImageBytes& image, float factor);
void scale_saturation(const ImageBytes& image, float factor);

// Turns the hue of every pixel by `turn`, in sixths of the circle times 2^16: red becomes yellow
// after one sixth, green after two. The largest and the smallest channel of a pixel keep their
// values, so value and saturation stay too. The channel between them is exact, rounded to the
// nearest.
//
// This is torchvision's adjust_hue() for tensors, except that torchvision rounds down there.
// torchvision's adjust_hue() for Pillow images rounds hue and saturation to bytes on the way, and
// is up to 18 of 255 away from both. REQUIRES: three channels, |turn| <= 3 * 2^16.
void turn_hue(const ImageBytes& image, int64_t turn);

// Fills the part of the square from (y, x) that lies in the image with `values`, one by channel.
void fill_square(const ImageBytes& image, int64_t y, int64_t x, int64_t side,
                 std::span<const uint8_t> values);

}  // namespace lockstep::data
