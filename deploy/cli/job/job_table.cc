#include "deploy/cli/job/job_table.h"

#include "comm/base/limits.h"
#include "comm/wire/data_formats.h"
#include "worker/model/gpt2_parts.h"

namespace lockstep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMaxCount = 1e15;      // exact in a double, and more than anybody counts
constexpr double kMaxSmallCount = 1e9;  // fits 32 bits
constexpr double kMaxSeed = 9223372036854774784.0;  // largest double below 2^63

constexpr std::string_view kModels[] = {"mlp",  "cnn",         "resnet18", "resnet50",
                                        "gpt2", "torchscript", "plugin"};
constexpr std::string_view kStems[] = {"auto", "cifar", "imagenet"};
constexpr std::string_view kOptimizers[] = {"sgd",     "adam",    "adamw",   "nadam",
                                            "rmsprop", "adagrad", "adadelta"};
constexpr std::string_view kSchedules[] = {"constant",    "linear", "cosine",  "step",
                                           "exponential", "cyclic", "onecycle"};
constexpr std::string_view kBackends[] = {"auto", "host", "nccl", "mpi"};
constexpr std::string_view kNumerics[] = {"exact", "fast"};
constexpr std::string_view kPrecisions[] = {"fp32", "bf16", "fp16"};
constexpr std::string_view kOnCorruption[] = {"rollback", "continue"};
constexpr std::string_view kOnBadSamples[] = {"stop", "skip"};
constexpr std::string_view kShuffles[] = {"sample", "block", "length"};
constexpr std::string_view kDocuments[] = {"stream", "pad", "pack"};
constexpr std::string_view kGraphs[] = {"auto", "on", "off"};
constexpr std::string_view kReaders[] = {"auto", "mmap", "io_uring", "pread"};
constexpr std::string_view kTunings[] = {"auto", "off"};
constexpr std::string_view kCacheTiers[] = {"remote", "all"};
constexpr std::string_view kCachePolicies[] = {"pin", "lru", "fifo"};
constexpr std::string_view kDevices[] = {"auto", "cpu", "cuda"};

constexpr NumberRange kNoRange = {-kInfinity, kInfinity, false, false};
constexpr NumberRange kPositive = {0, kInfinity, true, true};
constexpr NumberRange kNotNegative = {0, kInfinity, false, true};
constexpr NumberRange kGigabytes = {0, 1e9, false, true};
constexpr NumberRange kProbability = {0, 1, false, true};
constexpr NumberRange kShare = {0, 1, true, true};
constexpr NumberRange kFraction = {0, 1, true, false};

constexpr NumberRange count(double min, double max = kMaxCount) {
  return {min, max, false, false};
}

constexpr bool kIdentity = true;
constexpr bool kChangeable = false;
constexpr bool kShorthand = true;
constexpr bool kPlain = false;

// clang-format off
constexpr JobKey kRows[] = {
  {"job", "job", kNoRange, {}, kChangeable, kPlain,
   "name of the run, for people and labels"},
  {"seed", "1", count(0, kMaxSeed), {}, kIdentity, kPlain,
   "of initial weights, sample order and dropout"},
  {"model.name", "required", kNoRange, kModels, kIdentity, kShorthand,
   "mlp (784-256-128-10), cnn (two convolutions, two linear layers), resnet18, resnet50 or gpt2; "
   "torchscript or plugin: the file in model.path"},
  {"model.dropout", "0", kProbability, {}, kIdentity, kPlain,
   "probability, after the hidden layers; resnet: in front of the last one; gpt2: of the embedding "
   "and of what each half of a block adds"},
  {"model.batch_norm", "false", kNoRange, {}, kIdentity, kPlain,
   "batch normalisation after every hidden layer; resnet has its own"},
  {"model.stem", "auto", kNoRange, kStems, kIdentity, kPlain,
   "resnet's first layers. cifar: keep the size; imagenet: a quarter of it; auto: cifar up to 64 "
   "pixels"},
  {"model.size", "d12", kNoRange, kGpt2Sizes, kIdentity, kPlain,
   "gpt2's, by its layers: d4 (256 wide), d6 (384), d8 (512), d12 (768, GPT-2's smallest), d24 "
   "(1024), d36 (1280) or d48 (1600); the next three change it"},
  {"model.n_layer", "0", count(0, limits::kModelLayers), {}, kIdentity, kPlain,
   "gpt2: blocks; 0: of the size"},
  {"model.n_head", "0", count(0, limits::kModelWidth), {}, kIdentity, kPlain,
   "gpt2: attention heads; 0: of the size"},
  {"model.n_embd", "0", count(0, limits::kModelWidth), {}, kIdentity, kPlain,
   "gpt2: width, a multiple of the heads; 0: of the size"},
  {"model.block", "0", count(0, limits::kSequenceTokens), {}, kIdentity, kPlain,
   "tokens of a sequence, which is a sample; 0: 1024 with gpt2"},
  {"model.vocab", "0", count(0, limits::kVocabulary), {}, kIdentity, kPlain,
   "different tokens; 0: of text 256, or as many as data.tokenizer has; else up to the largest in "
   "the training data"},
  {"model.path", "", kNoRange, {}, kChangeable, kPlain,
   "torchscript: a module that torch.jit.save wrote; plugin: a shared library (PLUGIN.md); every "
   "worker reads it; relative to the job file"},
  {"model.sha256", "", kNoRange, {}, kIdentity, kPlain,
   "of the content of model.path, in hex; empty: of what is there at the first start"},
  {"data.train.path", "required", kNoRange, {}, kChangeable, kShorthand,
   "directory of images: one with a directory of JPEG or PNG files for each class, shards of "
   "WebDataset (*.tar, *.tar.gz), TFRecord or MDS, IDX files (train-images-*, train-labels-*, gzipped or not), "
   "CIFAR's binary version, NumPy arrays (*.npy, *.npz) or *.safetensors; for gpt2 a file of tokens "
   "(*.bin, *.npy, *.safetensors) or text (*.txt), or a directory of such; or where these are: "
   "http://, https:// or s3://"},
  {"data.train.format", "auto", kNoRange, kDataFormats, kChangeable, kPlain,
   "format of the files; auto: as found; npy_nchw, npy_nhwc: which axis the channels are; tokens: "
   "llm.c's or NumPy's, or uint16 without a header; tokens_u32: uint32 without one; megatron: "
   "*.bin with *.idx; text: a token is a byte, or data.tokenizer makes them"},
  {"data.train.fraction", "1", kFraction, {}, kIdentity, kPlain,
   "share of the samples that is trained on, after those of data.holdout; always the same ones of a "
   "data set and data.split_seed"},
  {"data.eval.path", "", kNoRange, {}, kChangeable, kShorthand,
   "directory with t10k-* or CIFAR's test files, or files with val, validation, test or eval in "
   "their names, or a directory for each class; "
   "default: data.train.path where it has them; empty: no evaluation"},
  {"data.eval.format", "auto", kNoRange, kDataFormats, kChangeable, kPlain,
   "format of the files; auto: as found; npy_nchw, npy_nhwc: which axis the channels are; tokens: "
   "llm.c's or NumPy's, or uint16 without a header; tokens_u32: uint32 without one; megatron: "
   "*.bin with *.idx; text: a token is a byte, or data.tokenizer makes them"},
  {"data.eval.fraction", "1", kFraction, {}, kIdentity, kPlain,
   "share of the evaluation data that is used; not with data.holdout"},
  {"data.holdout", "0", kProbability, {}, kIdentity, kPlain,
   "share of the training data that is held out, never trained on, and evaluated on instead of "
   "data.eval; 0: none"},
  {"data.split_seed", "0", count(0, kMaxSeed), {}, kIdentity, kPlain,
   "of which samples data.holdout and fraction take; not data.train's order, which is of seed, so "
   "that runs are compared on the same samples"},
  {"data.mix_weight", "1", count(1, limits::kMixWeights), {}, kIdentity, kPlain,
   "data.mix: samples of data.train of every so many as all weights sum up to"},
  {"data.mix.N.path", "required", kNoRange, {}, kChangeable, kPlain,
   "another data set whose samples come between those of data.train, by weight; as data.train.path. "
   "data.mix is a list of maps with these four keys, which N counts from 0; train.epochs counts "
   "passes over data.train"},
  {"data.mix.N.format", "auto", kNoRange, kDataFormats, kChangeable, kPlain,
   "as data.train.format"},
  {"data.mix.N.fraction", "1", kFraction, {}, kIdentity, kPlain,
   "as data.train.fraction, of this data set"},
  {"data.mix.N.weight", "1", count(1, limits::kMixWeights), {}, kIdentity, kPlain,
   "its samples of every so many as all weights sum up to"},
  {"data.shuffle", "sample", kNoRange, kShuffles, kIdentity, kPlain,
   "sample: any sample after any other; block: data.block_samples that lie side by side in the files "
   "are read together, for large files where single reads are slow; length: of padded documents, "
   "data.block_samples of about the same length after each other, so that little is padded"},
  {"data.block_samples", "1024", count(1), {}, kIdentity, kPlain,
   "data.shuffle block or length: samples of a block"},
  {"data.window_blocks", "256", count(1, kMaxSmallCount), {}, kIdentity, kPlain,
   "data.shuffle block: blocks from all of the data whose samples are mixed at a time; with fewer "
   "than 256 the batches of data that are sorted by label are one-sided"},
  {"data.length_classes", "0", count(0, limits::kLengthClasses), {}, kIdentity, kPlain,
   "of padded documents: so many classes as large as each other, from the shortest to the longest, "
   "are trained on one after another in every epoch, each shuffled by itself; 0: no such order"},
  {"data.transforms", "normalize", kNoRange, {}, kIdentity, kPlain,
   "applied to images in this order. First what changes their size: random_resized_crop=N, or "
   "resize=N and center_crop=N or random_crop=N (these two also behind flips, brightness, saturation, hue "
   "and normalize). Of training data: flip[=P], flip_vertical[=P], pad_crop=N, "
   "rotate=DEGREES, brightness=A, contrast=A, saturation=A, hue=A, cutout=N, each at random; of all: "
   "normalize, to zero mean and unit variance; of training data at the end mixup[=ALPHA], "
   "cutmix[=ALPHA]: mixed with others of the slot. gpt2: none"},
  {"data.tokenizer", "", kNoRange, {}, kChangeable, kPlain,
   "text: a byte-level BPE vocabulary that cuts as GPT-2's, which makes its tokens: a tokenizer.json, "
   "or a directory with that, or with vocab.json and merges.txt; empty: every byte is a token; "
   "every worker reads it; relative to the job file"},
  {"data.tokenizer_sha256", "", kNoRange, {}, kIdentity, kPlain,
   "of the content of data.tokenizer, in hex; empty: of what is there at the first start"},
  {"data.documents", "stream", kNoRange, kDocuments, kIdentity, kPlain,
   "tokens: how documents become sequences. stream: one after another, cut wherever a sequence ends; "
   "pad: each by itself, and nothing is learnt from what fills its sequence up; pack: several in a "
   "sequence by best fit, none of which sees the others (gpt2)"},
  {"data.document_end", "", kNoRange, {}, kIdentity, kPlain,
   "data.documents pad, pack: the token behind which a document ends, a number; empty: as the files "
   "say it: each file of text, Megatron-LM's documents, each list of Arrow's"},
  {"data.cache_dir", "", kNoRange, {}, kChangeable, kPlain,
   "inflated files, tokens of text, indexes of images, statistics; empty: RUN_DIR/cache"},
  {"data.prefetch_batches", "4", count(1, 1024), {}, kChangeable, kPlain,
   "batches that a worker reads ahead; data.tune: auto begins with them, and never takes fewer"},
  {"data.threads", "0", count(0, limits::kDataThreads), {}, kChangeable, kPlain,
   "threads of a worker that decode JPEG and PNG images; they do not change what is read; 0: the "
   "cores of its machine over cluster.workers, 1 to 16, from where data.tune: auto goes on"},
  {"data.tune", "auto", kNoRange, kTunings, kChangeable, kPlain,
   "auto: in the first batches of a run, threads that decode (1 to 16, where data.threads is 0) and "
   "batches that are read ahead (data.prefetch_batches to 64) follow the time that a worker waits "
   "for data, and stay then; they do not change what is read. off: both stay from the start"},
  {"data.reader", "auto", kNoRange, kReaders, kChangeable, kPlain,
   "how files are read ahead; it does not change what is read. auto: pread on file systems of a "
   "network; else nothing while all is in memory, then images by what is fastest on the first of "
   "them, other samples by mmap"},
  {"data.read_ahead_mb", "64", count(0, limits::kReadAheadMib), {}, kChangeable, kPlain,
   "MiB of samples, as they are stored, that a worker reads ahead of their use; 0: none, each is "
   "read when it is used"},
  {"data.cache.tier", "remote", kNoRange, kCacheTiers, kChangeable, kPlain,
   "what is kept in data.cache_dir, which must be a local disk then. remote: data at a URL; all: "
   "those at a path, too, which is on a slow mount"},
  {"data.cache.policy", "pin", kNoRange, kCachePolicies, kChangeable, kPlain,
   "when data.cache.limit_gb is reached. pin: what is there stays, best where every sample is read "
   "once an epoch; lru: what was used longest ago goes; fifo: what came first goes"},
  {"data.cache.limit_gb", "0", kGigabytes, {}, kChangeable, kPlain,
   "GB of samples on each machine; 0: as much as leaves a tenth of the disk free. Files that are "
   "read as a whole are kept beside it"},
  {"data.cache.memory_mb", "256", count(0, 1'000'000), {}, kChangeable, kPlain,
   "MiB of a worker: what was fetched ahead and is not kept on the disk"},
  {"data.cache.chunk_kb", "4096", count(64, 65'536), {}, kChangeable, kPlain,
   "KiB that are fetched with one request, and kept in one file"},
  {"data.cache.requests", "8", count(1, limits::kSourceRequests), {}, kChangeable, kPlain,
   "requests of a worker at a time"},
  {"data.cache.stall_s", "15", count(1, 3'600), {}, kChangeable, kPlain,
   "seconds with less than 1 KiB/s after which a request has failed"},
  {"data.cache.attempts", "5", count(1, 100), {}, kChangeable, kPlain,
   "times that a request is made before reading fails"},
  {"train.global_batch", "required", count(1, kMaxSmallCount), {}, kIdentity, kPlain,
   "samples of one optimizer step, over all workers; auto: train.slots times the largest power of "
   "two that fits into the memory of every worker, found and frozen before the first step",
   "auto"},
  {"train.slots", "0", count(0, limits::kSlots), {}, kIdentity, kPlain,
   "fixed shares of every global batch; 0: the number of workers at the first start"},
  {"train.epochs", "0", count(0, kMaxSmallCount), {}, kChangeable, kPlain,
   "passes over the training data; 0: until train.max_steps"},
  {"train.max_steps", "0", count(0), {}, kChangeable, kPlain,
   "end after so many steps; 0: no limit but train.epochs"},
  {"train.threads_per_worker", "1", count(1, 1024), {}, kIdentity, kPlain,
   "threads that compute in each worker"},
  {"train.eval_batch", "250", count(1, kMaxSmallCount), {}, kIdentity, kPlain,
   "samples of one evaluation batch; default 250, gpt2 4"},
  {"train.check_every", "100", count(0), {}, kChangeable, kPlain,
   "steps between two checks that all workers hold and compute the same bits, against memory and "
   "processors that err in silence; only with comm.numerics exact; 0: none"},
  {"train.on_corruption", "rollback", kNoRange, kOnCorruption, kChangeable, kPlain,
   "when such a check finds a difference. rollback: go back to before it; continue: only put out who "
   "computed wrong, and say so in the audit"},
  {"train.on_bad_samples", "stop", kNoRange, kOnBadSamples, kChangeable, kPlain,
   "when a step kills two workers in turn, or its loss is no number or a spike. stop: end with code "
   "65 and name the samples; skip: go back to before it and leave them out"},
  {"train.loss_spike", "0", kNotNegative, {}, kChangeable, kPlain,
   "a loss so many times the median of the 100 before is a spike; 0: none is"},
  {"train.precision", "fp32", kNoRange, kPrecisions, kIdentity, kPlain,
   "of forward and backward: fp32, bf16 or fp16; weights, sums and optimizer stay fp32"},
  {"train.loss_scale", "65536", {1, 0x1p100, false, false}, {}, kIdentity, kPlain,
   "fp16: by what the loss is multiplied at first, so that small gradients are not lost"},
  {"train.loss_scale_growth", "2", {1, 0x1p10, false, false}, {}, kIdentity, kPlain,
   "fp16: the scale is multiplied by it after train.loss_scale_growth_every steps that fit"},
  {"train.loss_scale_growth_every", "2000", count(1), {}, kIdentity, kPlain,
   "fp16: steps without an overflow in a row after which the scale grows"},
  {"train.loss_scale_backoff", "0.5", kShare, {}, kIdentity, kPlain,
   "fp16: after an overflow, of which nothing is applied, the scale is multiplied by it"},
  {"train.label_smoothing", "0", kProbability, {}, kIdentity, kPlain,
   "so much of every label belongs to all classes alike, as PyTorch's CrossEntropyLoss has it; "
   "evaluation counts whole labels"},
  {"train.accumulate", "1", count(1, limits::kSlots), {}, kIdentity, kPlain,
   "micro-batches of each worker a step: train.slots is this times the workers of the first start"},
  {"train.trace", "", kNoRange, {}, kChangeable, kPlain,
   "10:20: steps 11 to 20 are written to RUN_DIR/trace (--trace steps=10:20); empty: none are"},
  {"train.graph", "auto", kNoRange, kGraphs, kChangeable, kPlain,
   "built-in models on a GPU: forward and backward as one CUDA graph for each of the two commonest "
   "slot sizes; on, off; auto: with comm.numerics fast"},
  {"optimizer.name", "adamw", kNoRange, kOptimizers, kIdentity, kShorthand,
   "sgd, adam, adamw, nadam, rmsprop, adagrad or adadelta"},
  {"optimizer.lr", "0.001", kPositive, {}, kChangeable, kPlain,
   "learning rate; default 0.001, sgd 0.1, nadam 0.002, rmsprop and adagrad 0.01, adadelta 1"},
  {"optimizer.momentum", "0.9", kProbability, {}, kIdentity, kPlain,
   "of sgd; of rmsprop, default 0"},
  {"optimizer.weight_decay", "0.01", kNotNegative, {}, kIdentity, kPlain,
   "adamw: decoupled, default 0.01; the others: L2, default 0"},
  {"optimizer.beta1", "0.9", kProbability, {}, kIdentity, kPlain,
   "of adam, adamw, nadam"},
  {"optimizer.beta2", "0.999", kProbability, {}, kIdentity, kPlain,
   "of adam, adamw, nadam"},
  {"optimizer.eps", "1e-08", kPositive, {}, kIdentity, kPlain,
   "of all but sgd; default 1e-08, adagrad 1e-10, adadelta 1e-06"},
  {"optimizer.nesterov", "false", kNoRange, {}, kIdentity, kPlain,
   "sgd: look ahead along the momentum"},
  {"optimizer.alpha", "0.99", kProbability, {}, kIdentity, kPlain,
   "rmsprop: how much of the mean of squares stays"},
  {"optimizer.centered", "false", kNoRange, {}, kIdentity, kPlain,
   "rmsprop: divide by the standard deviation"},
  {"optimizer.lr_decay", "0", kNotNegative, {}, kIdentity, kPlain,
   "adagrad: the rate is divided by 1 + steps done x this"},
  {"optimizer.rho", "0.9", kProbability, {}, kIdentity, kPlain,
   "adadelta: how much of its means stays"},
  {"optimizer.momentum_decay", "0.004", kNotNegative, {}, kIdentity, kPlain,
   "of nadam"},
  {"optimizer.spare_vectors", "false", kNoRange, {}, kIdentity, kPlain,
   "no weight decay of biases and normalisation layers, only of matrices and filters"},
  {"optimizer.clip_norm", "0", kNotNegative, {}, kIdentity, kPlain,
   "a gradient that is longer is scaled down to this length; 0: never"},
  {"schedule.name", "constant", kNoRange, kSchedules, kChangeable, kShorthand,
   "learning rate over the steps: constant, linear, cosine, step, exponential, cyclic or onecycle"},
  {"schedule.warmup_steps", "0", count(0), {}, kChangeable, kPlain,
   "steps of linear rise from 0 before the schedule begins; not with onecycle"},
  {"schedule.min_lr", "0", kNotNegative, {}, kChangeable, kPlain,
   "linear, cosine: learning rate at the end; cyclic: the lowest"},
  {"schedule.step_every", "1000", count(1), {}, kChangeable, kPlain,
   "step: steps between two decays"},
  {"schedule.gamma", "0.1", kPositive, {}, kChangeable, kPlain,
   "step: factor of each decay, default 0.1; exponential: of each step, default 0.999; cyclic: of "
   "the height of each cycle, default 1"},
  {"schedule.max_lr", "0", kNotNegative, {}, kChangeable, kPlain,
   "onecycle, cyclic: the peak; 0: optimizer.lr"},
  {"schedule.cycle_up", "1000", count(1), {}, kChangeable, kPlain,
   "cyclic: steps from the lowest rate to the peak"},
  {"schedule.cycle_down", "0", count(0), {}, kChangeable, kPlain,
   "cyclic: steps from the peak to the lowest rate; 0: as many as up"},
  {"schedule.pct_start", "0.3", kShare, {}, kChangeable, kPlain,
   "onecycle: share of the steps in which the rate rises"},
  {"schedule.div_factor", "25", kPositive, {}, kChangeable, kPlain,
   "onecycle: peak / first learning rate"},
  {"schedule.final_div_factor", "10000", kPositive, {}, kChangeable, kPlain,
   "onecycle: first / last learning rate"},
  {"schedule.total_steps", "0", count(0), {}, kChangeable, kPlain,
   "linear, cosine, onecycle: length; 0: until the end of the run"},
  {"comm.backend", "auto", kNoRange, kBackends, kChangeable, kPlain,
   "how gradients are summed; host: shared memory and TCP; nccl: between GPUs, one for each worker; "
   "mpi: Open MPI under mpirun; auto: host"},
  {"comm.bucket_mb", "4", {0, 1024, true, false}, {}, kChangeable, kPlain,
   "MiB of gradients that are summed at a time, while backward goes on"},
  {"comm.numerics", "exact", kNoRange, kNumerics, kIdentity, kPlain,
   "exact: the same bits for any number of workers; fast: any order of sums"},
  {"comm.network", "loopback", kNoRange, {}, kChangeable, kPlain,
   "where control and data listen: loopback: this machine only; a network as in 10.2.0.0/16, or an "
   "interface as in eth0: the address that each machine has there"},
  {"comm.tls", "", kNoRange, {}, kChangeable, kPlain,
   "directory of each machine with its ca.crt, tls.crt and tls.key (lockstep certs makes them): control "
   "and data are mutual TLS 1.3; empty: authenticated by the run's token, not encrypted"},
  {"comm.trusted_network", "false", kNoRange, {}, kChangeable, kPlain,
   "everybody in comm.network may read and change what is trained: comm.backend nccl and mpi, which "
   "neither authenticate nor encrypt, may leave the machine, and comm.tls is for control only"},
  {"comm.advertise", "", kNoRange, {}, kChangeable, kPlain,
   "name under which others find the coordinator, resolved at every attempt, where its address can "
   "change (Kubernetes); empty: its address in comm.network"},
  {"checkpoint.every_steps", "500", count(0), {}, kChangeable, kPlain,
   "steps between two checkpoints; 0: only at the end"},
  {"checkpoint.keep", "2", count(2, 1'000'000), {}, kChangeable, kPlain,
   "newest checkpoints that stay"},
  {"cluster.workers", "0", count(1, limits::kMembers), {}, kChangeable, kPlain,
   "worker processes (--workers); default: one for each GPU, or for each core, at most 8"},
  {"cluster.device", "auto", kNoRange, kDevices, kChangeable, kPlain,
   "where the workers compute; auto: cuda where a GPU can be used. Several workers may share one"},
  {"cluster.start_timeout_s", "120", count(1, 86'400), {}, kChangeable, kPlain,
   "all workers must have registered by then"},
  {"cluster.lease_s", "10", count(1, 3'600), {}, kChangeable, kPlain,
   "a worker that is silent for so long is dead"},
  {"cluster.grace_s", "60", count(1, 86'400), {}, kChangeable, kPlain,
   "from a stop signal to the last checkpoint written"},
  {"cluster.min_workers", "1", count(1, limits::kMembers), {}, kChangeable, kPlain,
   "with fewer workers the run waits for more"},
  {"cluster.min_wait_s", "600", count(1, 604'800), {}, kChangeable, kPlain,
   "how long it waits for them, then it ends with code 75"},
  {"cluster.max_crashes", "10", count(0, 1'000'000), {}, kChangeable, kPlain,
   "how often one worker is started again after a crash, within an hour"},
  {"cluster.max_preemptions", "100", count(0, 1'000'000), {}, kChangeable, kPlain,
   "the same after a preemption: SIGTERM to that worker alone"},
  {"cluster.hang_s", "300", count(0, 86'400), {}, kChangeable, kPlain,
   "without progress for so long, the worker that is behind is put out; 0: never"},
  {"cluster.rebalance", "true", kNoRange, {}, kChangeable, kPlain,
   "give slower workers fewer of the slots, where there are more slots than workers"},
  {"metrics.listen", "127.0.0.1:0", kNoRange, {}, kChangeable, kPlain,
   "host:port of the coordinator's HTTP; port 0: any free one; beyond loopback, as in network:9400 (the "
   "address in comm.network), with comm.tls and the token in RUN_DIR/http_token"},
  {"metrics.hosts", "", kNoRange, {}, kChangeable, kPlain,
   "further names that a Host header may have, beside those of the certificate"},
  {"metrics.peak_tflops", "0", {0, 1e6, false, false}, {}, kChangeable, kPlain,
   "what one worker's device can compute at most at train.precision, for the share that a gpt2 "
   "reaches (lockstep_job_model_flops_utilization_ratio); 0: not known"},
};
// clang-format on

}  // namespace

std::span<const JobKey> job_keys() {
  return kRows;
}

}  // namespace lockstep
