#include "deploy/cli/script/script_keys.h"

#include <algorithm>
#include <span>

namespace lockstep {
namespace {

struct OwnWord {
  std::string_view keys;  // a key, or all that begin so if it ends with a dot
  std::string_view instead;
};

// For a job that names its data.
constexpr OwnWord kOfJobData[] = {
    {"data.eval.",
     "the script opens its evaluation data itself; give them to run.evaluate(), or hold some of "
     "the "
     "training data out with data.holdout"},
    {"data.", ""},
    {"model.block", ""},
    {"model.vocab", ""},
};

constexpr std::string_view kPrecision =
    "the script chooses its precision itself; take torch.autocast and torch.amp.GradScaler there";
constexpr std::string_view kLoss =
    "the script computes its loss itself; set it there, as in torch.nn.functional.cross_entropy";

// The first that fits holds.
constexpr OwnWord kOwnWords[] = {
    {"model.name", ""},
    {"model.init", "the script loads its weights itself; call model.load_state_dict there"},
    {"model.recompute", "the script makes its model itself; take torch.utils.checkpoint there"},
    {"model.", "the script makes its model itself; set it there"},
    {"optimizer.clip_norm",
     "the script updates its weights itself; clip there, with torch.nn.utils.clip_grad_norm_"},
    {"optimizer.",
     "the script makes its optimizer itself; set it there, as in "
     "torch.optim.AdamW(model.parameters(), lr=1e-3)"},
    {"schedule.",
     "the script makes its schedule itself; set it there, as in "
     "torch.optim.lr_scheduler.CosineAnnealingLR"},
    {"data.",
     "the script opens its data itself; name them there, as in run.batches(dataset), or name "
     "data.train.path here, for run.batches()"},
    {"train.precision", kPrecision},
    {"train.loss_scale", kPrecision},
    {"train.loss_scale_growth", kPrecision},
    {"train.loss_scale_growth_every", kPrecision},
    {"train.loss_scale_backoff", kPrecision},
    {"train.loss", kLoss},
    {"train.label_smoothing", kLoss},
    {"train.ema",
     "the script keeps its averages itself; take torch.optim.swa_utils.AveragedModel there"},
    {"train.prune.", "the script prunes its model itself; take torch.nn.utils.prune there"},
    {"train.graph", "the script compiles its model itself; take torch.compile there"},
};

const OwnWord* find_word(std::span<const OwnWord> words, std::string_view key) {
  const auto found = std::ranges::find_if(words, [&](const OwnWord& word) {
    return word.keys == key || (word.keys.ends_with('.') && key.starts_with(word.keys));
  });
  return found == words.end() ? nullptr : &*found;
}

}  // namespace

std::string_view said_by_script(std::string_view key, bool has_data) {
  const OwnWord* word = has_data ? find_word(kOfJobData, key) : nullptr;
  if (word == nullptr) word = find_word(kOwnWords, key);
  return word == nullptr ? std::string_view() : word->instead;
}

}  // namespace lockstep
