#include "data/transform/transform_list.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>

#include "comm/base/nearest.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kNormalize = "normalize";
constexpr double kNeeded = -1;  // there is no amount that everybody means

struct Word {
  std::string_view name;
  AugmentKind kind;
  double usual;  // the amount where none is said
  double least;
  double most;
  bool whole;
};

constexpr Word kWords[] = {
    {"flip", AugmentKind::kFlip, 0.5, 0, 1, false},
    {"flip_vertical", AugmentKind::kFlipVertical, 0.5, 0, 1, false},
    {"pad_crop", AugmentKind::kPadCrop, kNeeded, 1, 256, true},
    {"rotate", AugmentKind::kRotate, kNeeded, 0, 180, false},
    {"brightness", AugmentKind::kBrightness, kNeeded, 0, 1, false},
    {"contrast", AugmentKind::kContrast, kNeeded, 0, 1, false},
    {"saturation", AugmentKind::kSaturation, kNeeded, 0, 1, false},
    {"cutout", AugmentKind::kCutout, kNeeded, 1, 1024, true},
};

Status wrong(const std::string& what) {
  return {Code::kUsage, "data.transforms " + what};
}

// Of the frame, in front of the others.
struct FrameWord {
  std::string_view name;
  CropKind crop;  // kNone: resize
};

constexpr FrameWord kFrameWords[] = {
    {"resize", CropKind::kNone},
    {"center_crop", CropKind::kCenter},
    {"random_crop", CropKind::kRandom},
    {"random_resized_crop", CropKind::kRandomResized},
};
constexpr uint32_t kMostSide = 4'096;

Status not_known(std::string_view name) {
  std::vector<std::string_view> names{kNormalize};
  for (const FrameWord& word : kFrameWords) names.push_back(word.name);
  for (const Word& word : kWords) names.push_back(word.name);
  return wrong("has \"" + std::string(name) + "\" but must be of " + join_names(names) +
               did_you_mean(name, names));
}

std::string range_of(const Word& word) {
  std::ostringstream text;
  text << (word.whole ? "a whole number, " : "a number, ") << word.least << " to " << word.most;
  return text.str();
}

Result<AugmentStep> parse_step(const Word& word, const std::string& text, bool has_amount,
                               std::string_view amount) {
  AugmentStep step{word.kind, word.usual};
  if (!has_amount) {
    if (word.usual != kNeeded) return step;
    return wrong("has \"" + text + "\" without " + range_of(word) + "; write " + text + "=NUMBER");
  }
  const char* end = amount.data() + amount.size();
  const auto [rest, error] = std::from_chars(amount.data(), end, step.amount);
  const bool is_number = error == std::errc() && rest == end && std::isfinite(step.amount);
  const bool is_right = is_number && step.amount >= word.least && step.amount <= word.most &&
                        (!word.whole || step.amount == std::floor(step.amount));
  if (is_right) return step;
  return wrong("has \"" + text + "\", but behind = there must be " + range_of(word));
}

Status parse_frame_word(const FrameWord& word, const std::string& text, std::string_view amount,
                        TransformList& list) {
  uint32_t side = 0;
  const char* end = amount.data() + amount.size();
  const auto [rest, error] = std::from_chars(amount.data(), end, side);
  if (error != std::errc() || rest != end || side == 0 || side > kMostSide)
    return wrong("has \"" + text + "\", but behind = there must be a number of pixels, 1 to " +
                 std::to_string(kMostSide));
  if (!list.augment.empty())
    return wrong("has \"" + text +
                 "\" behind what works on images of the final size; put it "
                 "in front");
  if (list.frame.crop != CropKind::kNone)
    return wrong("has \"" + text + "\" behind another crop; leave one, and resize before it");
  if (word.crop == CropKind::kNone) {
    list.frame.resize = side;
  } else {
    list.frame.crop = word.crop;
    list.frame.size = side;
  }
  return Status::ok();
}

Status check_frame(const ImageFrame& frame) {
  if (frame.resize > 0 && frame.crop == CropKind::kNone)
    return wrong("has resize=" + std::to_string(frame.resize) +
                 " without a crop, and images keep their ratio of sides; put center_crop=N or "
                 "random_crop=N behind it");
  if (frame.resize > 0 && frame.size > frame.resize)
    return wrong("cuts " + std::to_string(frame.size) + " pixels out of " +
                 std::to_string(frame.resize) + "; resize to at least as many");
  return Status::ok();
}

}  // namespace

Result<TransformList> parse_transforms(const std::vector<std::string>& words) {
  TransformList list;
  std::set<std::string_view> seen;
  for (const std::string& text : words) {
    const size_t equals = text.find('=');
    const bool has_amount = equals != std::string::npos;
    const std::string_view name = std::string_view(text).substr(0, equals);
    if (!seen.insert(name).second)
      return wrong("names " + std::string(name) + " twice; leave one of them");
    if (list.normalizes)
      return wrong("has \"" + text + "\" behind normalize, which must be the last one");
    if (name == kNormalize && !has_amount) {
      list.normalizes = true;
      continue;
    }
    if (name == kNormalize) return wrong("has \"" + text + "\", but normalize takes no number");
    const auto* frame_word = std::find_if(std::begin(kFrameWords), std::end(kFrameWords),
                                          [&](const FrameWord& w) { return w.name == name; });
    if (frame_word != std::end(kFrameWords)) {
      const std::string_view pixels = has_amount ? std::string_view(text).substr(equals + 1) : "";
      LOCKSTEP_RETURN_IF_ERROR(parse_frame_word(*frame_word, text, pixels, list));
      continue;
    }
    const auto* word = std::find_if(std::begin(kWords), std::end(kWords),
                                    [&](const Word& w) { return w.name == name; });
    if (word == std::end(kWords)) return not_known(name);
    const std::string_view amount =
        has_amount ? std::string_view(text).substr(equals + 1) : std::string_view();
    LOCKSTEP_ASSIGN_OR_RETURN(const AugmentStep step, parse_step(*word, text, has_amount, amount));
    list.augment.push_back(step);
  }
  LOCKSTEP_RETURN_IF_ERROR(check_frame(list.frame));
  return list;
}

}  // namespace lockstep::data
