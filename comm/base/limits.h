// The limits of every queue, frame, header and retry. A limit stands here and nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/base/byte_units.h"

namespace lockstep::limits {

// Control plane
inline constexpr size_t kFrameBytesBeforeAuth = 4 * kKib;  // a stranger gets no more memory
inline constexpr size_t kFrameBytes = 16 * kMib;           // one control message
inline constexpr size_t kSendQueueBytes = 64 * kMib;       // per connection; more closes it
inline constexpr int kAuthDeadlineMs = 5'000;  // from accept until the peer has proven itself
inline constexpr size_t kUnauthenticatedConnections = 64;  // at once, on the data plane
inline constexpr size_t kUnprovenPeers = 1'024;    // at once, coordinator: 10,000 may come together
inline constexpr size_t kUnprovenOfOneHost = 128;  // then its oldest makes room for others
inline constexpr int64_t kProofPromptMs = 500;     // an unproven peer older than this makes room
inline constexpr size_t kOwnAddresses = 65'536;    // from which a caller has proven itself
inline constexpr int64_t kKnockMs = 120'000;       // between two clocks, for a knock before TLS
inline constexpr size_t kKnocksKept = 262'144;     // in twice that time
inline constexpr size_t kTlsCallers = 16'384;      // at once, before TLS: a descriptor each
inline constexpr size_t kTlsHandshakes = 64;       // prompt handshakes at once
inline constexpr int64_t kTlsPromptMs = 500;       // a handshake that takes longer is not prompt
inline constexpr int kLingerMs = 1'000;            // for delivery after close()
inline constexpr int kConnectTimeoutMs = 5'000;
inline constexpr int kBackoffFirstMs = 20;               // pause between two attempts of a client,
inline constexpr int kBackoffMaxMs = 2'000;              // doubling up to this
inline constexpr int64_t kCoordinatorSilentMs = 30'000;  // then its connection counts as lost
inline constexpr int64_t kSilenceLooks = 6;              // checks for silence in that time
inline constexpr int kAcceptRetryMs = 100;   // after accept() failed, e.g. no descriptors
inline constexpr int kRefusalLogLines = 20;  // about strangers, in one window
inline constexpr int kRefusalLogWindowMs = 10'000;
inline constexpr size_t kTokenFileBytes = kKib;
inline constexpr size_t kRunDirBytes = 490;       // SQLite takes paths of 512
inline constexpr int64_t kSecretsLookMs = 1'000;  // between two looks for changed files
inline constexpr int64_t kOldTokenMs = 600'000;   // a replaced token still holds for this long
inline constexpr size_t kCertificateBytes = 256 * kKib;  // a file of certificates or keys
inline constexpr size_t kMembers = 65'536;
inline constexpr size_t kSlots = 65'536;
inline constexpr uint32_t kTurns = 16;            // updates on one batch
inline constexpr size_t kCasualties = 1'024;      // deaths whose samples are still suspects
inline constexpr size_t kSkips = 64;              // times that policy leaves slots out, in a run
inline constexpr size_t kErrorBytes = 1'000;      // an error that a script raised, as compared,
inline constexpr size_t kTraceBytes = 16 * kKib;  // and its traceback

// Restarts of processes
inline constexpr int64_t kRestartWindowMs = 3'600'000;  // the window that restarts count in
inline constexpr uint32_t kSupervisedRestarts = 100;    // of coordinator and agent, in one window
inline constexpr int64_t kQuickDeathMs = 2'000;         // so soon after the start, a death is quick
inline constexpr uint32_t kQuickDeaths = 10;  // of coordinator or agent in a row: no more restarts
inline constexpr uint32_t kFruitlessBeginnings = 30;   // in a row, without a step: the run ends
inline constexpr int64_t kRestartPauseFirstMs = 250;   // before the restart after two quick deaths,
inline constexpr int64_t kRestartPauseMaxMs = 10'000;  // doubling up to this
inline constexpr int64_t kRestartAfterExitMs = 500;    // pause after an exit that the worker chose
inline constexpr size_t kExitsTold = 1'000;  // exits reported to a coordinator that comes back
inline constexpr int64_t kCoordinatorAwayMs = 600'000;  // an agent without workers waits this long
inline constexpr int64_t kCommandMs = 10'000;           // for the answer to a command

// Traces
inline constexpr size_t kTraceEvents = 1'000'000;      // of one worker
inline constexpr size_t kTraceFileBytes = 512 * kMib;  // of one rank, when traces are merged

// HTTP
inline constexpr size_t kHttpHeaderBytes = 8 * kKib;
inline constexpr size_t kHttpAllHeaderBytes = 8 * kHttpHeaderBytes;  // of a request's answers
inline constexpr size_t kHttpBodyBytes = 4 * kKib;  // our servers answer GET and HEAD only
inline constexpr int kHttpDeadlineMs = 10'000;
inline constexpr size_t kHttpConnections = 128;
inline constexpr size_t kHttpAnswerBytes = 16 * kMib;  // read by our own client

// A script's statements about itself and its data when it registers
inline constexpr size_t kIdentityFacts = 16'384;
inline constexpr size_t kIdentityKeyBytes = 256;
inline constexpr size_t kIdentityValueBytes = 4 * kKib;
inline constexpr size_t kIdentityBytes = 4 * kMib;  // all keys and values
inline constexpr size_t kFingerprintBytes = 256;    // of its data
inline constexpr size_t kScriptHashBytes = 64;      // of its code, or of the state that it makes
inline constexpr uint64_t kScriptSamples = uint64_t{1} << 40;

// Records
inline constexpr int kRecordBatchSteps = 100;
inline constexpr int kRecordBatchMs = 200;

// Job file
inline constexpr size_t kJobFileBytes = kMib;

// Data
inline constexpr size_t kIdxHeaderBytes = 4 + 4 * 8;          // magic and at most 8 dimensions
inline constexpr size_t kNpyHeaderBytes = 10'000;             // as in NumPy's own reader
inline constexpr size_t kNpyDims = 64;                        // as in NumPy's own reader
inline constexpr uint64_t kDatasetBytes = uint64_t{1} << 44;  // content of one file, inflated
inline constexpr uint64_t kWholeInflateRatio = 200;        // inflated to compressed size of a file,
inline constexpr uint64_t kWholeInflateBytes = 16 * kMib;  // with so much on top;
inline constexpr uint64_t kArrayInflateBytes = kGib;  // of IDX and npz: masks of zeros deflate well
inline constexpr uint64_t kCacheRoomBytes = 64 * kMib;  // that copies leave free on a disk
inline constexpr uint64_t kSampleBytes = 256 * kMib;    // one sample in its stored form
inline constexpr uint32_t kLabel = 65'535;              // largest class label
inline constexpr size_t kLegendNames = 32'768;          // classes whose names a run keeps,
inline constexpr size_t kLegendNameBytes = 384 * kKib;  // and the names as JSON
inline constexpr size_t kLegendChannels = 4'096;        // that normalize has constants of
inline constexpr size_t kDataDirectoryEntries = 4'096;  // entries searched for IDX files
inline constexpr uint32_t kPrefetchBatches = 1'024;
inline constexpr uint32_t kDataThreads = 256;       // of one worker's loader
inline constexpr uint32_t kReadsInFlight = 32;      // of one reader
inline constexpr uint32_t kReadAttempts = 4;        // attempts of a read that fails (EIO)
inline constexpr size_t kReadAheadSamples = 4'096;  // in flight, of one loader
inline constexpr uint32_t kLengthClasses = 1024;    // of a curriculum
inline constexpr uint64_t kReadAheadMib = uint64_t{1024} * 1024;  // of one worker
inline constexpr uint64_t kEncodedBytes = 64'000'000;             // one JPEG or PNG image
inline constexpr uint32_t kImageSide = 32'768;                    // pixels, of one image
inline constexpr uint64_t kImagePixels = 128'000'000;  // pixels of one image: 512 MB as colours
inline constexpr uint64_t kIndexedSamples = 4'000'000'000;  // one data set with an index
inline constexpr size_t kSampleNameBytes = 4'096;           // a path inside a data set
inline constexpr size_t kMixedDatasets = 64;                // of one mixture
inline constexpr uint32_t kMixWeights = 100'000;            // sum of a mixture's weights
inline constexpr uint32_t kSequenceTokens = 1'048'576;      // one sample
inline constexpr uint64_t kDocumentPieces = 1'000'000'000;  // one data set, in memory
inline constexpr uint32_t kVocabulary = 16'777'216;         // different tokens
inline constexpr uint64_t kVocabularyBytes = 32'000'000;    // a file of BPE tokens
inline constexpr size_t kVocabularyTokenBytes = 64 * kKib;  // one BPE token
inline constexpr size_t kAddedTokens = 4'096;               // one BPE vocabulary
inline constexpr uint32_t kModelLayers = 1'024;
inline constexpr uint32_t kModelWidth = 65'536;
inline constexpr size_t kModelFileBytes = 16 * kGib;     // TorchScript, exported program, plug-in
inline constexpr size_t kProgramEntries = 65'600;        // files in an exported program,
inline constexpr size_t kProgramJsonBytes = 64 * kMib;   // each of its JSON files,
inline constexpr size_t kProgramJsonLevels = 64;         // nesting of values in it,
inline constexpr size_t kProgramJsonValues = 8'000'000;  // all its values,
inline constexpr size_t kProgramNodes = 200'000;         // calls of operators,
inline constexpr uint64_t kProgramRepeatedBytes = 256 * kMib;  // a tensor larger than its storage
inline constexpr size_t kStatisticsFileBytes = 16 * kMib;

// data.tune
inline constexpr uint32_t kTuningWindows = 24;  // windows of batches until tuning ends
inline constexpr uint64_t kTuningWindowBatches = 4'096;
inline constexpr uint32_t kTunedBatches = 64;             // batches ahead of the training,
inline constexpr uint64_t kTunedBatchBytes = 256 * kMib;  // and their memory

// A cloud's metadata service, and DMI
inline constexpr size_t kMetadataBytes = 64 * kKib;  // one answer

// Sources at URLs
inline constexpr int64_t kSourcePauseMs = 5'000;          // the longest pause between two attempts
inline constexpr long kHttpRedirects = 5;                 // one request
inline constexpr size_t kHttpErrorBytes = 16 * kKib;      // read of an error's answer
inline constexpr uint64_t kSourceListBytes = 64'000'000;  // a manifest, or a page of a listing
inline constexpr size_t kHttpObjects = 100'000;           // in a manifest: each costs a request
inline constexpr size_t kSourceObjects = 50'000'000;      // one source
inline constexpr size_t kSourceNameBytes = 1'024;         // one object's name, as in S3
inline constexpr size_t kCredentialsFileBytes = kMib;
inline constexpr uint64_t kChunkBytesMin = 64 * kKib;  // a cached piece of an object
inline constexpr uint64_t kChunkBytesMax = 64 * kMib;
inline constexpr uint32_t kSourceRequests = 64;      // of one process, at once
inline constexpr size_t kAnnouncedRanges = 262'144;  // ranges that wait for the fetch ahead

// Arrow IPC files
inline constexpr size_t kArrowMetadataBytes = 64 * kMib;  // one message, or the footer
inline constexpr uint32_t kArrowTablesDeep = 64;          // nesting of flatbuffer tables
inline constexpr size_t kArrowDepth = 16;                 // nesting of columns
inline constexpr size_t kArrowFields = 4'096;             // columns of a file, nested ones included
inline constexpr size_t kArrowJsonBytes = 4 * kMib;       // JSON in metadata
inline constexpr uint64_t kArrowInflateRatio = 1'000;     // inflated to compressed size of a file,
inline constexpr uint64_t kArrowInflateBytes = 16 * kMib;  // with this much on top
inline constexpr uint64_t kJoinedTokenBytes = 256 * kMib;  // sequences across batches
inline constexpr uint64_t kPackBatchBytes = 16 * kMib;     // one written batch
inline constexpr uint32_t kPackShardMb = 65'536;           // one file

// Checkpoints
inline constexpr size_t kSafetensorsHeaderBytes = 16 * kMib;
inline constexpr size_t kTensors = 65'536;  // in one safetensors file
inline constexpr size_t kTensorDims = 16;
inline constexpr size_t kManifestBytes = 64 * kMib;
inline constexpr size_t kManifestFiles = 64;
inline constexpr size_t kCheckpointNameBytes = 128;

// Transfer of state between members
inline constexpr size_t kTransferChunkBytes = kMib;

// Records of a worker that the coordinator has not acknowledged
inline constexpr size_t kRecordBatchesInMemory = 64;       // more are spilled to a file
inline constexpr size_t kRecordBatchesInFlight = 8;        // sent and not acknowledged
inline constexpr uint64_t kRecordSpillBytes = kGib;        // the spill file
inline constexpr size_t kManifestRecordsBytes = 4 * kMib;  // in one checkpoint manifest

// Partial sums that one kernel adds at once
inline constexpr uint32_t kDeviceLeaves = 128;

// The GPUs' connection
// Thread blocks of a kernel of NCCL, each with a multiprocessor that backward does not have, and
// channels to a peer.
inline constexpr int kNcclBlocks = 16;
inline constexpr int kNcclSpinUs = 200;          // a wait for NCCL spins for so long at first,
inline constexpr int kNcclPollUs = 50;           // then sleeps between two looks
inline constexpr uint32_t kNcclConnects = 3;     // failed ones between the same members in a row
inline constexpr uint32_t kNcclSumFailures = 3;  // of one rank's side, between the same members
inline constexpr int kNcclLookMs = 100;          // between two looks at a call that may be stuck
inline constexpr int kNcclStuckLooks = 300;      // in a closed generation: then it is
inline constexpr int64_t kNcclEndMs = 5'000;  // to end a connection where the host sums after all

// A worker's words about its NUMA node
inline constexpr size_t kNumaBytes = 400;

// Kept for the report of a hang
inline constexpr size_t kFlightLines = 256;             // operations that a worker remembers
inline constexpr size_t kHangLines = 200;               // of these, and of NCCL's log, in a file
inline constexpr size_t kHangLineBytes = 400;           // of a line of NCCL's log
inline constexpr size_t kHangFileBytes = 512 * kKib;    // of one worker; a longer one is not read
inline constexpr size_t kHangBytes = 128 * kMib;        // of all workers, that a report reads
inline constexpr size_t kHangFiles = 4'096;             // of a run that are looked at
inline constexpr size_t kHangRanksShown = 32;           // with all their lines
inline constexpr int64_t kStandstillMs = 30'000;        // without cluster.hang_s: worth a file
inline constexpr int64_t kNcclLogBytes = 16 * kMib;     // of one worker on the disk
inline constexpr size_t kNcclLogTailBytes = 64 * kKib;  // of its end, that is read

// Groups of optimizer settings that one kernel takes
inline constexpr uint32_t kUpdateGroups = 8;

// comm.backend auto
inline constexpr int kDeviceTrialMs = 20'000;   // to connect the GPUs and sum one bucket
inline constexpr int kDeviceTrialRankMs = 250;  // more for each rank
inline constexpr uint64_t kDeviceTrialElements = 8 * 1024 * 1024;

// train.global_batch auto
inline constexpr uint64_t kAutoSlotSamples = 1'024;  // the largest slot that a worker tries
inline constexpr uint64_t kAutoMemoryPercent = 80;  // share of the free memory that a step may take
inline constexpr uint64_t kNcclBytes = 512 * kMib;  // of a GPU, whatever the world
// Memory of a GPU for each peer: on its own node, to which up to 32 channels of 10 MiB lead (a site
// may raise kNcclBlocks by NCCL_MAX_CTAS); and on another node.
inline constexpr uint64_t kNcclPeerBytes = 320 * kMib;
inline constexpr uint64_t kNcclFarPeerBytes = 16 * kMib;
inline constexpr uint32_t kNcclRingPeers = 2;     // of its node, to which fast sums connect a GPU
inline constexpr int64_t kAutoTrialsMs = 30'000;  // all trials: workers wait for each other
inline constexpr size_t kSystemFileBytes = 64 * kKib;  // a file below /proc or /sys

// Metrics of ranks
inline constexpr size_t kRanksShown = 512;     // each with its own series; beyond this number
inline constexpr size_t kWorstRanksShown = 8;  // only the worst of every family

// Metrics of GPUs
inline constexpr unsigned int kGpus = 64;          // shown of one machine
inline constexpr int kGpuEventsAtOnce = 1'024;     // errors counted in one look
inline constexpr int64_t kGpuSampleWaitMs = 200;   // a scrape waits this long for values
inline constexpr int64_t kGpuLeaveWaitMs = 1'000;  // for the reading thread to end
inline constexpr size_t kGpuProcesses = 64;        // on one GPU, read in one look

// Health of GPUs
inline constexpr int64_t kGpuLookMs = 60'000;       // between two looks of an agent
inline constexpr int64_t kGpuFirstLookMs = 10'000;  // the first one waits for a driver that starts
inline constexpr uint32_t kGpuLastingLooks = 5;     // of heat in a row, until the worker leaves
inline constexpr uint32_t kGpuCleanLooks = 5;       // in a row, until the GPU is fit again
inline constexpr size_t kNoticeBytes = 1'000;       // of the reason that a notice gives

}  // namespace lockstep::limits
