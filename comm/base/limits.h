// Every queue, frame, header and retry has a limit, and all of them stand here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::limits {

// Control plane
inline constexpr size_t kFrameBytesBeforeAuth = 4 * 1024;    // a stranger gets no more memory
inline constexpr size_t kFrameBytes = 16 * 1024 * 1024;      // one control message
inline constexpr size_t kSendQueueBytes = 64 * 1024 * 1024;  // per connection; beyond: closed
inline constexpr int kAuthDeadlineMs = 5'000;                // from accept to proven
inline constexpr size_t kUnauthenticatedConnections = 64;    // at once, data plane
inline constexpr size_t kUnprovenPeers =
    1'024;  // at once, coordinator: 10,000 workers may come together
inline constexpr size_t kTlsCallers = 16'384;  // at once, before TLS begins: a descriptor each
inline constexpr size_t kTlsHandshakes = 64;   // in hand at once, of the prompt ones
inline constexpr int64_t kTlsPromptMs = 500;   // a handshake that takes longer is not
inline constexpr int kLingerMs = 1'000;        // close() may still deliver for so long
inline constexpr int kConnectTimeoutMs = 5'000;
inline constexpr int kBackoffFirstMs = 20;               // between two attempts of a client,
inline constexpr int kBackoffMaxMs = 2'000;              // doubling up to here
inline constexpr int64_t kCoordinatorSilentMs = 30'000;  // then a connection to it counts as lost
inline constexpr int64_t kSilenceLooks = 6;              // in that time
inline constexpr int kAcceptRetryMs = 100;   // after accept() failed, e.g. no descriptors
inline constexpr int kRefusalLogLines = 20;  // about strangers, per window
inline constexpr int kRefusalLogWindowMs = 10'000;
inline constexpr size_t kTokenFileBytes = 1024;
inline constexpr int64_t kSecretsLookMs = 1'000;         // between two looks whether files changed
inline constexpr int64_t kOldTokenMs = 600'000;          // that a token holds after it was replaced
inline constexpr size_t kCertificateBytes = 256 * 1024;  // one file of certificates or keys
inline constexpr size_t kMembers = 65'536;
inline constexpr size_t kSlots = 65'536;
inline constexpr size_t kCasualties = 1'024;  // deaths whose samples are still suspects
inline constexpr size_t kSkips = 64;          // entries of slots left out by policy, in a run

// Processes that are started again
inline constexpr int64_t kRestartWindowMs = 3'600'000;  // in which restarts are counted
inline constexpr uint32_t kSupervisedRestarts = 100;    // of coordinator and agent, in the window
inline constexpr int64_t kQuickDeathMs = 2'000;         // so soon after its start a death is quick
inline constexpr int64_t kRestartPauseFirstMs = 250;   // before the restart after two quick deaths,
inline constexpr int64_t kRestartPauseMaxMs = 10'000;  // doubling up to here
inline constexpr int64_t kRestartAfterExitMs = 500;    // after an exit that the worker chose
inline constexpr size_t kExitsTold = 1'000;            // to a coordinator that comes back
inline constexpr int64_t kCoordinatorAwayMs = 600'000;  // that an agent without workers waits
inline constexpr int64_t kCommandMs = 10'000;           // for the answer to a command

// Traces
inline constexpr size_t kTraceEvents = 1'000'000;             // of one worker
inline constexpr size_t kTraceFileBytes = 512 * 1024 * 1024;  // of one rank, when they are merged

// HTTP
inline constexpr size_t kHttpHeaderBytes = 8 * 1024;
inline constexpr size_t kHttpBodyBytes = 4 * 1024;  // we only serve GET and HEAD
inline constexpr int kHttpDeadlineMs = 10'000;
inline constexpr size_t kHttpConnections = 128;
inline constexpr size_t kHttpAnswerBytes = 16 * 1024 * 1024;  // that our own client reads

// Records
inline constexpr int kRecordBatchSteps = 100;
inline constexpr int kRecordBatchMs = 200;

// Job file
inline constexpr size_t kJobFileBytes = 1024 * 1024;

// Data
inline constexpr size_t kIdxHeaderBytes = 4 + 4 * 8;          // magic and at most 8 dimensions
inline constexpr size_t kNpyHeaderBytes = 10'000;             // as NumPy's own reader
inline constexpr size_t kNpyDims = 64;                        // likewise
inline constexpr uint64_t kDatasetBytes = uint64_t{1} << 44;  // of one file's content, inflated
inline constexpr uint64_t kWholeInflateRatio = 200;           // of a shard that is compressed, and
inline constexpr uint64_t kWholeInflateBytes = 16 * 1024 * 1024;  // so much on top
inline constexpr uint64_t kCacheRoomBytes = 64 * 1024 * 1024;  // that copies leave free on a disk
inline constexpr uint64_t kSampleBytes = 256 * 1024 * 1024;    // one sample as stored
inline constexpr uint32_t kLabel = 65'535;                     // largest class label
inline constexpr size_t kDataDirectoryEntries = 4'096;         // looked at for IDX files
inline constexpr uint32_t kPrefetchBatches = 1'024;
inline constexpr uint32_t kDataThreads = 256;           // of one worker's loader
inline constexpr uint32_t kReadsInFlight = 32;          // of one reader
inline constexpr uint32_t kReadAttempts = 4;            // of one that fails (EIO)
inline constexpr size_t kReadAheadSamples = 4'096;      // on their way, of one loader
inline constexpr uint32_t kLengthClasses = 1024;        // of a curriculum
inline constexpr uint64_t kReadAheadMib = 1024 * 1024;  // of one worker
inline constexpr uint64_t kDirectBytes = 256 * 1024;    // from there on around the page cache
inline constexpr uint64_t kBounceBytes = 1024 * 1024;   // of one buffer for that
inline constexpr size_t kBounceBuffers = 8;
inline constexpr size_t kDirectFiles = 256;                 // open for that
inline constexpr uint64_t kEncodedBytes = 64'000'000;       // of one JPEG or PNG image
inline constexpr uint32_t kImageSide = 32'768;              // of one, in pixels
inline constexpr uint64_t kImagePixels = 128'000'000;       // of one: 512 MB as colours
inline constexpr uint64_t kIndexedSamples = 4'000'000'000;  // of one data set with an index
inline constexpr size_t kSampleNameBytes = 4'096;           // a path inside of a data set
inline constexpr size_t kMixedDatasets = 64;                // of one mixture
inline constexpr uint32_t kMixWeights = 100'000;            // sum of its weights
inline constexpr uint32_t kSequenceTokens = 1'048'576;      // of one sample
inline constexpr uint64_t kDocumentPieces = 1'000'000'000;  // of one data set, held in memory
inline constexpr uint32_t kVocabulary = 16'777'216;         // different tokens
inline constexpr uint64_t kVocabularyBytes = 32'000'000;    // of a file of BPE tokens
inline constexpr size_t kVocabularyTokenBytes = 65'536;     // of one of these
inline constexpr size_t kAddedTokens = 4'096;               // of one such vocabulary
inline constexpr uint32_t kModelLayers = 1'024;
inline constexpr uint32_t kModelWidth = 65'536;
inline constexpr size_t kModelFileBytes = size_t{16} << 30;  // TorchScript file or plug-in
inline constexpr size_t kStatisticsFileBytes = 16 * 1024 * 1024;

// data.tune
inline constexpr uint32_t kTuningWindows = 24;  // of batches, until it is done
inline constexpr uint64_t kTuningWindowBatches = 4'096;
inline constexpr uint32_t kTunedBatches = 64;                    // ahead of the training, and
inline constexpr uint64_t kTunedBatchBytes = 256 * 1024 * 1024;  // their memory

// Sources that are far away
inline constexpr int64_t kSourcePauseMs = 5'000;          // between two attempts, at most
inline constexpr long kHttpRedirects = 5;                 // of one request
inline constexpr size_t kHttpErrorBytes = 16 * 1024;      // read of an answer that is an error
inline constexpr uint64_t kSourceListBytes = 64'000'000;  // of a manifest, or a page of a listing
inline constexpr size_t kHttpObjects = 100'000;           // in a manifest: a request each
inline constexpr size_t kSourceObjects = 50'000'000;      // of one source
inline constexpr size_t kSourceNameBytes = 1'024;         // of one object, as S3 has it
inline constexpr size_t kCredentialsFileBytes = 1024 * 1024;
inline constexpr uint64_t kChunkBytesMin = 64 * 1024;  // of a cached piece of an object
inline constexpr uint64_t kChunkBytesMax = uint64_t{64} * 1024 * 1024;
inline constexpr uint32_t kSourceRequests = 64;      // of one process, at once
inline constexpr size_t kAnnouncedRanges = 262'144;  // that wait to be fetched ahead

// Arrow IPC files
inline constexpr size_t kArrowMetadataBytes = 64 * 1024 * 1024;   // of one message, or the footer
inline constexpr uint32_t kArrowTablesDeep = 64;                  // within each other, of these
inline constexpr size_t kArrowDepth = 16;                         // columns within columns
inline constexpr size_t kArrowFields = 4'096;                     // of a file, with those within
inline constexpr size_t kArrowJsonBytes = 4 * 1024 * 1024;        // of what metadata say in JSON
inline constexpr uint64_t kArrowInflateRatio = 1'000;             // inflated to compressed, and
inline constexpr uint64_t kArrowInflateBytes = 16 * 1024 * 1024;  // so much on top, of a file
inline constexpr uint64_t kJoinedTokenBytes = 256 * 1024 * 1024;  // of sequences across batches
inline constexpr uint64_t kPackBatchBytes = 16 * 1024 * 1024;     // of one that is written
inline constexpr uint32_t kPackShardMb = 65'536;                  // of one file

// Checkpoints
inline constexpr size_t kSafetensorsHeaderBytes = 16 * 1024 * 1024;
inline constexpr size_t kTensors = 65'536;  // in one safetensors file
inline constexpr size_t kTensorDims = 16;
inline constexpr size_t kManifestBytes = 64 * 1024 * 1024;
inline constexpr size_t kManifestFiles = 64;
inline constexpr size_t kCheckpointNameBytes = 128;

// State that goes from one member to another
inline constexpr size_t kTransferChunkBytes = 1024 * 1024;

// Records of a worker that the coordinator has not acknowledged
inline constexpr size_t kRecordBatchesInMemory = 64;  // beyond: spilled to a file
inline constexpr size_t kRecordBatchesInFlight = 8;   // sent and not yet acknowledged
inline constexpr uint64_t kRecordSpillBytes = 1024ull * 1024 * 1024;  // of that file
inline constexpr size_t kManifestRecordsBytes = 4 * 1024 * 1024;      // in one checkpoint manifest

// Partial sums that a kernel adds at once
inline constexpr uint32_t kDeviceLeaves = 128;

// The GPUs' connection: pause between two looks at what NCCL is doing
inline constexpr int kNcclPollUs = 50;

// Optimizer settings that differ by group, as a kernel takes them
inline constexpr uint32_t kUpdateGroups = 8;

// train.global_batch auto
inline constexpr uint64_t kAutoSlotSamples = 1'024;    // of the largest slot that is tried
inline constexpr uint64_t kAutoMemoryPercent = 80;     // of the free memory that a step may take
inline constexpr int64_t kAutoTrialsMs = 30'000;       // for all trials; the workers are awaited
inline constexpr size_t kSystemFileBytes = 64 * 1024;  // below /proc and /sys

// Metrics of ranks
inline constexpr size_t kRanksShown = 512;     // each with series of its own; beyond that
inline constexpr size_t kWorstRanksShown = 8;  // of every family

// Metrics of GPUs
inline constexpr unsigned int kGpus = 64;          // shown of one machine
inline constexpr int kGpuEventsAtOnce = 1'024;     // errors counted at one look
inline constexpr int64_t kGpuSampleWaitMs = 200;   // that a scrape waits for their values
inline constexpr int64_t kGpuLeaveWaitMs = 1'000;  // for who reads them, to end in order

}  // namespace lockstep::limits
