#include "data/transform/transform_list.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>

#include "comm/base/text/nearest.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kNormalize = "normalize";
constexpr double kNeeded = -1;  // there is no usual amount

struct Amount {
  double usual;  // where none is said
  double least;
  double most;
  bool whole;
};

struct Word {
  std::string_view name;
  AugmentKind kind;
  Amount amount;
};

constexpr Word kWords[] = {
    {"flip", AugmentKind::kFlip, {0.5, 0, 1, false}},
    {"flip_vertical", AugmentKind::kFlipVertical, {0.5, 0, 1, false}},
    {"pad_crop", AugmentKind::kPadCrop, {kNeeded, 1, 256, true}},
    {"rotate", AugmentKind::kRotate, {kNeeded, 0, 180, false}},
    {"brightness", AugmentKind::kBrightness, {kNeeded, 0, 1, false}},
    {"contrast", AugmentKind::kContrast, {kNeeded, 0, 1, false}},
    {"saturation", AugmentKind::kSaturation, {kNeeded, 0, 1, false}},
    {"hue", AugmentKind::kHue, {kNeeded, 0, 0.5, false}},
    {"cutout", AugmentKind::kCutout, {kNeeded, 1, 1024, true}},
};

// Words of the batch, after all others.
struct MixWord {
  std::string_view name;
  double MixRule::*alpha;
};

constexpr MixWord kMixWords[] = {{"mixup", &MixRule::mixup}, {"cutmix", &MixRule::cutmix}};
constexpr Amount kAlpha = {1, 0.001, 1000, false};  // within what draw_beta() takes

Status wrong(const std::string& what) {
  return {Code::kUsage, "data.transforms " + what};
}

// Words of the frame, before the others.
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

bool is_window(const FrameWord& word) {
  return word.crop == CropKind::kCenter || word.crop == CropKind::kRandom;
}

// Whether cutting a window before or after this step gives the same bits.
bool works_on_windows(AugmentKind kind) {
  switch (kind) {
    case AugmentKind::kFlip:
    case AugmentKind::kFlipVertical:
    case AugmentKind::kBrightness:
    case AugmentKind::kSaturation:
    case AugmentKind::kHue:
      return true;
    case AugmentKind::kPadCrop:
    case AugmentKind::kRotate:
    case AugmentKind::kContrast:
    case AugmentKind::kCutout:
      return false;
  }
  return false;
}

Status not_known(std::string_view name) {
  std::vector<std::string_view> names{kNormalize};
  for (const FrameWord& word : kFrameWords) names.push_back(word.name);
  for (const Word& word : kWords) names.push_back(word.name);
  for (const MixWord& word : kMixWords) names.push_back(word.name);
  return wrong("has \"" + std::string(name) + "\", which is not a transform; use " +
               join_names(names) + did_you_mean(name, names));
}

std::string range_of(const Amount& amount) {
  std::ostringstream text;
  text << (amount.whole ? "a whole number, " : "a number, ") << amount.least << " to "
       << amount.most;
  return text.str();
}

// The amount after the = of `text`, or the usual one.
Result<double> parse_amount(const Amount& amount, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    if (amount.usual != kNeeded) return amount.usual;
    return wrong("has \"" + text + "\" without " + range_of(amount) + "; write " + text +
                 "=NUMBER");
  }
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + equals + 1, end, value);
  const bool is_number = error == std::errc() && rest == end && std::isfinite(value);
  const bool is_right = is_number && value >= amount.least && value <= amount.most &&
                        (!amount.whole || value == std::floor(value));
  if (is_right) return value;
  return wrong("has \"" + text + "\"; write " + std::string(text, 0, equals) + "= and " +
               range_of(amount));
}

// Checks the place of a word of the frame, after the words that the list has already.
Status check_place(const FrameWord& word, const std::string& text, const TransformList& list) {
  if (list.frame.crop != CropKind::kNone)
    return wrong("has \"" + text + "\" after another crop; keep one crop, and resize before it");
  if (!is_window(word) && !list.augment.empty())
    return wrong("has \"" + text +
                 "\" after a step that changes pixels; put it before that step, because scaling "
                 "rounds pixels");
  for (const AugmentStep& step : list.augment) {
    if (works_on_windows(step.kind)) continue;
    const auto* behind = std::find_if(std::begin(kWords), std::end(kWords),
                                      [&](const Word& w) { return w.kind == step.kind; });
    return wrong("has \"" + text + "\" after " + std::string(behind->name) +
                 ", which depends on the whole image; put it before " + std::string(behind->name));
  }
  return Status::ok();
}

// Gives the frame the flips that come before its window.
void take_flips(TransformList& list) {
  for (const AugmentStep& step : list.augment) {
    if (step.kind == AugmentKind::kFlip) list.frame.flip = step.amount;
    if (step.kind == AugmentKind::kFlipVertical) list.frame.flip_vertical = step.amount;
  }
}

Status parse_frame_word(const FrameWord& word, const std::string& text, std::string_view amount,
                        TransformList& list) {
  uint32_t side = 0;
  const char* end = amount.data() + amount.size();
  const auto [rest, error] = std::from_chars(amount.data(), end, side);
  if (error != std::errc() || rest != end || side == 0 || side > kMostSide)
    return wrong("has \"" + text + "\"; write " + std::string(word.name) +
                 "= and a number of pixels, 1 to " + std::to_string(kMostSide));
  LOCKSTEP_RETURN_IF_ERROR(check_place(word, text, list));
  if (word.crop == CropKind::kNone) {
    list.frame.resize = side;
  } else {
    list.frame.crop = word.crop;
    list.frame.size = side;
    take_flips(list);
  }
  return Status::ok();
}

Status check_frame(const ImageFrame& frame) {
  if (frame.resize > 0 && frame.crop == CropKind::kNone)
    return wrong("has resize=" + std::to_string(frame.resize) +
                 " without a crop; resize keeps the aspect ratio, so put center_crop=N or "
                 "random_crop=N after it");
  if (frame.resize > 0 && frame.size > frame.resize)
    return wrong("crops " + std::to_string(frame.size) + " pixels out of " +
                 std::to_string(frame.resize) + "; resize to at least " +
                 std::to_string(frame.size));
  return Status::ok();
}

template <typename Words>
auto* find_word(const Words& words, std::string_view name) {
  const auto* end = std::end(words);
  const auto* word =
      std::find_if(std::begin(words), end, [&](const auto& w) { return w.name == name; });
  return word == end ? nullptr : word;
}

// Parses a word that changes the images one by one, except `normalize`.
Status parse_image_word(const std::string& text, std::string_view name, TransformList& list) {
  if (const FrameWord* word = find_word(kFrameWords, name)) {
    const bool has_amount = name.size() < text.size();
    const auto pixels = has_amount ? std::string_view(text).substr(name.size() + 1) : "";
    return parse_frame_word(*word, text, pixels, list);
  }
  const Word* word = find_word(kWords, name);
  if (word == nullptr) return not_known(name);
  LOCKSTEP_ASSIGN_OR_RETURN(const double amount, parse_amount(word->amount, text));
  list.augment.push_back({word->kind, amount});
  return Status::ok();
}

}  // namespace

Result<TransformList> parse_transforms(const std::vector<std::string>& words) {
  TransformList list;
  std::set<std::string_view> seen;
  for (const std::string& text : words) {
    const std::string_view name = std::string_view(text).substr(0, text.find('='));
    if (!seen.insert(name).second)
      return wrong("names " + std::string(name) + " twice; leave one of them");
    if (const MixWord* word = find_word(kMixWords, name)) {
      LOCKSTEP_ASSIGN_OR_RETURN(list.mix.*(word->alpha), parse_amount(kAlpha, text));
      continue;
    }
    if (!list.mix.is_empty())
      return wrong("has \"" + text + "\" after mixup or cutmix, which come last");
    const FrameWord* frame = find_word(kFrameWords, name);
    if (list.normalizes && (frame == nullptr || !is_window(*frame)))
      return wrong(
          "has \"" + text +
          "\" after normalize; only center_crop, random_crop, mixup and cutmix may follow it");
    if (name == kNormalize) {
      if (name.size() < text.size())
        return wrong("has \"" + text + "\", but normalize takes no number");
      list.normalizes = true;
      continue;
    }
    LOCKSTEP_RETURN_IF_ERROR(parse_image_word(text, name, list));
  }
  LOCKSTEP_RETURN_IF_ERROR(check_frame(list.frame));
  return list;
}

}  // namespace lockstep::data
