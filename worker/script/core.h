/* The worker of a Python process, as a plain C interface that lockstep/_core.py loads by ctypes.
 *
 * Python's main thread computes; a training thread of C++ decides. They meet at one desk (desk.h):
 * ls_next() hands a reply over and waits for the next order. The two threads never work at once.
 *
 *   ls_open - [ls_open_device] - [ls_set_turns] - ls_declare or ls_open_data - trial: ls_task_of -
 * ls_layout - ls_evaluates - ls_begin
 *     - ls_next: an order and its reply, again and again, until END - ls_close
 *
 *   In a SLOT: ls_has_samples or ls_batch_of, ls_backward_begins, ls_take for each gradient,
 *   ls_take_statistic. In an EVAL: ls_eval_batch. On a device whose module the run has opened:
 *   ls_place instead, and for each gradient and statistic ls_writes_on - Python writes it -
 * ls_wrote or ls_wrote_statistic; in an APPLY with `device_sums` ls_reads_on - Python reads -
 * ls_has_read.
 *
 * Codes: LS_OK; LS_CLOSED: the generation of this slot is over, the slot is asked for again;
 * LS_AGAIN: no order yet; else an exit code of sysexits, and ls_error() says why, on the thread
 * that got the code.
 *
 * Memory: the memory that an order points to is valid until the next ls_next() that brings an
 * order. The memory that a reply points to is the caller's, and stays as it is until then.
 *
 * Thread-safety: one thread, the main one; ls_take(), ls_writes_on() and ls_wrote() also on
 * autograd's thread of a device, while the main one waits for backward. ls_error(): any thread.
 * ls_request_stop() and ls_set_paused(): any thread, but not during ls_close() or after it. Before
 * ls_begin() no thread is started.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LS_API __attribute__((visibility("default")))

enum ls_code { LS_OK = 0, LS_CLOSED = 1, LS_AGAIN = 2 };

typedef struct ls_run ls_run;
typedef struct ls_batch_handle ls_batch_handle;

/* A tensor, in row-major order. `section` and `dtype` are the numbers of StateSection and DType
 * (comm/run/checkpoint/state_tensor.h). */
typedef struct ls_tensor {
  const char* name;
  const int64_t* shape;
  void* data;
  uint64_t bytes;
  uint32_t dims;
  uint8_t section;
  uint8_t dtype;
  /* Of a parameter of ls_layout(): its gradient does not come exactly once in a slot, so it is
   * complete only when the slot is done. */
  uint8_t is_late;
} ls_tensor;

/* One slot: positions [begin, end) of an epoch's order. */
typedef struct ls_task {
  uint64_t step;
  uint64_t epoch;
  uint64_t begin;
  uint64_t end;
  uint64_t step_samples; /* of all slots together: every loss of the step is divided by them; 0 from
                          * ls_upcoming() */
  uint32_t slot;
  uint32_t seed; /* of the slot's random numbers */
  uint32_t turn; /* which update on the batch this is, from 0; steps of a batch differ by it */
} ls_task;

enum ls_field_role { LS_INPUT = 0, LS_TARGET, LS_WEIGHT };

/* A tensor of a batch of the job's own data. The samples lie `sample_stride` elements apart; within
 * one the elements are in row-major order. */
typedef struct ls_field {
  const char* name; /* as the job says; empty: it says none */
  const int64_t* shape;
  void* data;
  uint64_t bytes; /* from the first sample to the end of the last */
  int64_t sample_stride;
  uint32_t dims;
  uint8_t role;
  uint8_t dtype;
} ls_field;

/* The memory of the fields stays as it is until ls_batch_free(handle), also after ls_close(). The
 * first field is the input. */
typedef struct ls_batch {
  ls_batch_handle* handle;
  const ls_field* fields;
  uint64_t field_count;
} ls_batch;

/* The last evaluation that a state has seen. `step`: applied steps of its weights; 0: there
 * was none. `correct`: right predictions among `samples`. */
typedef struct ls_evaluated {
  uint64_t step;
  double loss;
  uint64_t correct;
  uint64_t samples;
} ls_evaluated;

/* EDGE: the code between two epochs may run, and change the kept state, until the reply. */
enum ls_order_kind { LS_SLOT = 1, LS_APPLY, LS_STATE, LS_INSTALL, LS_EVAL, LS_END, LS_EDGE };

typedef struct ls_order {
  int32_t kind;
  int32_t exit_code;        /* END */
  ls_task task;             /* SLOT. APPLY: its seed, which no slot has, its epoch and its turn.
                             * EVAL: [begin, end), seed. EDGE: its seed, and the epoch that ends */
  uint64_t generation;      /* SLOT, APPLY: with another one, upcoming slots are others, too.
                             * STATE: 0: of none. EDGE */
  uint64_t step;            /* APPLY: that is applied. STATE, INSTALL, EVAL, EDGE: applied steps of
                             * the state */
  const ls_tensor* tensors; /* INSTALL */
  uint64_t tensor_count;
  const char* text;  /* END: why, or the last words of a run of one process, or a replay's report */
  int32_t is_again;  /* SLOT: the slot was computed before; it is not kept */
  int32_t is_done;   /* END: every step is applied. EDGE: it is the last of the run */
  int32_t is_writer; /* APPLY, STATE, EDGE: this process writes what the run keeps */
  uint64_t share_end; /* EVAL: the end of this process's samples in this evaluation */
  /* APPLY: of the step, the same bits in every process of the run. */
  double loss;            /* mean over what the step counts */
  int32_t ends_run;       /* all slots of the step have said so */
  const double* metrics;  /* means over its samples, as many as ls_layout() was told */
  ls_evaluated evaluated; /* EDGE, too */
  uint32_t evaluation;    /* EVAL: which one, by the calls of ls_evaluates() */
  /* APPLY: the sums, in the device's memory, laid out as a place; null: where ls_memory says.
   * Python leaves them as they are: gradients count times `factor`, statistics are to be divided by
   * `slots`. */
  const float* device_sums;
  float factor;
  uint32_t slots;
} ls_order;

typedef struct ls_reply {
  int32_t code;    /* not LS_OK: it failed with this exit code, for `text` */
  int32_t skipped; /* APPLY: the update was left out */
  const char* text;
  const double* lrs; /* APPLY, INSTALL, EDGE: of the next step of each turn */
  double loss;       /* SLOT, EVAL: mean over what the slot or batch counts */
  uint64_t count;    /* SLOT, EVAL: samples, or what the script counts instead */
  /* SLOT, EVAL: means over the samples, as many as ls_layout(), ls_evaluates() was told. */
  const double* metrics;
  const ls_tensor* tensors; /* STATE */
  uint64_t tensor_count;
  uint64_t correct; /* EVAL: right predictions among `count` */
  /* The run is to end with this step. SLOT: it does if all slots of the step say so. APPLY: it
   * does, since every process says so. The run ends only in a batch's last turn, so Python repeats
   * there what it said in an earlier turn. EDGE: it ends where it stands. */
  int32_t ends_run;
  /* With a code: the script's own code raised `text`, the error and then its traceback. Another
   * slot may raise the same. */
  int32_t has_raised;
} ls_reply;

/* Where the sums of a step are for APPLY. All floats; the run's own memory. */
typedef struct ls_memory {
  const float* gradients;  /* of parameter i: at parameter_begins[i] */
  const float* statistics; /* means over the slots; of statistic i: at statistic_begins[i] */
  const float* used;       /* by parameter: slots whose gradient it was in */
  const uint64_t* parameter_begins;
  const uint64_t* statistic_begins;
  uint64_t gradient_floats;
  uint64_t statistic_floats;
  uint64_t statistics_at; /* of a place: statistic i at statistics_at + statistic_begins[i] */
} ls_memory;

LS_API const char* ls_error(void);

/* `worker`: "key=value" lines of the agent (worker_lines.h): a worker of a run, whose
 * job is in its run directory. Null: alone, with this serialized wire::JobSpec. */
LS_API int ls_open(const char* worker, const void* job, size_t job_bytes, ls_run** run);
/* Alone, over the steps of a plan that `lockstep replay` wrote to this file. */
LS_API int ls_open_replay(const char* plan, ls_run** run);
/* The facts of its job that a script may ask for, as "key=value" lines. */
LS_API const char* ls_job(const ls_run* run);

/* The loop makes so many updates on each batch (comm/run/plan/step_plan.h). Before the data are
 * declared; else there is one. */
LS_API int ls_set_turns(ls_run* run, uint32_t turns);
/* Declares the data. Once. */
LS_API int ls_declare(ls_run* run, uint64_t samples, const char* fingerprint);
/* Opens the data that the job names, instead of ls_declare(). `cache`: the directory for inflated
 * files and indexes, where the job names none; null: the one in the run directory. `samples`: of an
 * epoch. `eval_samples`: of the job's evaluation data, which are opened, too; null: they are not.
 */
LS_API int ls_open_data(ls_run* run, const char* cache, uint64_t* samples, uint64_t* eval_samples);
/* LS_CLOSED: the slot has no samples. */
LS_API int ls_task_of(ls_run* run, uint64_t step, uint32_t slot, ls_task* task);
/* `indices`: end - begin of them. */
LS_API int ls_indices(ls_run* run, const ls_task* task, uint64_t* indices);

/* After ls_open_data(): the samples of this slot, before ls_begin() or in its SLOT. There, they
 * count as had (ls_has_samples()). */
LS_API int ls_batch_of(ls_run* run, const ls_task* task, ls_batch* batch);
/* After ls_open_data() with evaluation data: samples [begin, end) of them, in their own order.
 * Before ls_begin() or in its EVAL. */
LS_API int ls_eval_batch(ls_run* run, uint64_t begin, uint64_t end, ls_batch* batch);
/* Any thread. */
LS_API void ls_batch_free(ls_batch_handle* handle);

/* The script computes on a device whose module is the library at `path`: gradients stay there, and
 * the devices sum as comm.backend says. Not called: they come by ls_take(). Before ls_begin(). */
LS_API int ls_open_device(ls_run* run, const char* path);

/* Declares what is trained: parameters in registration order, floats that slots change, names of
 * metrics, and bit by bit in which turns of a batch each is given. Slots of other turns reply
 * anything for it. `has_counts`: the script says what a slot counts. Once. `memory` outlives the
 * run. */
LS_API int ls_layout(ls_run* run, const ls_tensor* parameters, uint32_t parameter_count,
                     const ls_tensor* statistics, uint32_t statistic_count,
                     const char* const* metrics, const uint32_t* metric_turns,
                     uint32_t metric_count, int has_counts, ls_memory* memory);

/* The script evaluates: so many samples, and what the score of a batch has besides its loss. Once
 * for each of its evaluations, or not at all. The first decides what is best (checkpoint.best,
 * train.patience); what the others find stands beside it as metrics, "name/loss". `name`: of an
 * evaluation after the first, else empty. `fingerprint`: of the data; empty: they are the job's. */
LS_API int ls_evaluates(ls_run* run, const char* name, uint64_t samples, const char* fingerprint,
                        const char* const* metrics, uint32_t metric_count, int knows_right);

/* Threads start; a worker connects and registers with these lines of its numerics ("key=value") and
 * these facts of its identity. `state_hash`: of what the script keeps, as it was made; `code_hash`:
 * of the script and its modules. `lrs`: of the first step of each turn. Once. */
LS_API int ls_begin(ls_run* run, const char* const* fingerprint, uint32_t lines,
                    const char* const* keys, const char* const* values, uint32_t facts,
                    const char* state_hash, const char* code_hash, const double* lrs);

/* `reply`: to the order before, once; then null until the next order has come. Waits at most
 * `wait_ms`. */
LS_API int ls_next(ls_run* run, const ls_reply* reply, ls_order* order, int wait_ms);

/* The next slots of this process that ls_upcoming() has not given yet, at most `most`. */
LS_API int ls_upcoming(ls_run* run, uint32_t most, ls_task* tasks, uint32_t* count);

/* In a SLOT: these samples are here, as they were requested from the data. */
LS_API int ls_has_samples(ls_run* run, const uint64_t* indices, uint64_t count);
/* In a SLOT: waits until gradients may be written. */
LS_API int ls_backward_begins(ls_run* run);
/* In a SLOT: (more of) a parameter's gradient, in the parameter's memory order. */
LS_API int ls_take(ls_run* run, uint32_t parameter, const void* data, uint8_t dtype,
                   uint64_t elements);
LS_API int ls_take_statistic(ls_run* run, uint32_t statistic, const float* data, uint64_t elements);

/* In a SLOT, after ls_backward_begins(): the device's memory where this slot's gradients and
 * statistics go, by ls_memory; it lasts until ls_close(). Null: they go by ls_take(). */
LS_API int ls_place(ls_run* run, float** place);
/* From now on Python also writes there on this stream of the device (a cudaStream_t). */
LS_API int ls_writes_on(ls_run* run, void* stream);
/* Python has written (more of) a parameter's gradient, as floats in the parameter's memory order,
 * on a stream that ls_writes_on() was told; or a statistic. */
LS_API int ls_wrote(ls_run* run, uint32_t parameter, uint64_t elements);
LS_API int ls_wrote_statistic(ls_run* run, uint32_t statistic, uint64_t elements);
/* In an APPLY with `device_sums`: from now on this stream may read them; and everything that does
 * is on the stream by now. */
LS_API int ls_reads_on(ls_run* run, void* stream);
LS_API int ls_has_read(ls_run* run, void* stream);

/* 1: members check each other after `applied` steps because of train.check_every. Else 0, also
 * where they do so only because the run may end there. */
LS_API int ls_is_check(const ls_run* run, uint64_t applied);

/* A debugger has stopped the script (1), or lets it go on (0): the run does not take the worker for
 * one that hangs. */
LS_API void ls_set_paused(ls_run* run, int is_paused);
/* From now on this process votes to stop. */
LS_API void ls_request_stop(ls_run* run);
/* Joins the threads, or ends the process with `exit_code` if they do not come. An order in hand has
 * failed. The memory that ls_memory points to stays. */
LS_API void ls_close(ls_run* run, int exit_code);

#ifdef __cplusplus
}
#endif
