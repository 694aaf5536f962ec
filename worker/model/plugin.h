/* A model of your own in a shared library: model.name: plugin, model.path: libmymodel.so.
 *
 * A plug-in exports two functions, declared below. Lockstep calls describe() once, before anything
 * else. describe() shakes hands, then says what the model consists of. Lockstep calls forward() for
 * every slot of every step; with a loss of its own a plug-in exports lockstep_model_losses() as
 * well, and Lockstep calls that instead. A plug-in includes only this header of Lockstep. The
 * header is plain C, and grows only with LOCKSTEP_PLUGIN_ABI or by functions that need not be
 * there. PLUGIN.md shows how to write, build and run a plug-in.
 *
 * TENSORS cross as pointers to at::Tensor, so LibTorch's autograd computes the backward. With plain
 * buffers a plug-in would have to bring a backward, layer by layer. The price is that plug-in and
 * worker must have the same LibTorch. The handshake checks this. Do not link a plug-in with
 * LibTorch: the plug-in uses the LibTorch that the worker has loaded.
 *
 * ERRORS leave either function as a C++ exception. Lockstep shows its text with the plug-in's path.
 *
 * THREADS: one call at a time.
 *
 * SAME BITS for any number of workers hold for a plug-in too, if forward() depends on its arguments
 * alone. It keeps no state between calls except the buffers that it is given, and uses no clock.
 * Its only random generators are LibTorch's default ones, for the CPU and for the input's device.
 * Lockstep seeds them before every call from seed, step and slot, so forward() may use at::dropout
 * and similar.
 */
#ifndef LOCKSTEP_PLUGIN_H_
#define LOCKSTEP_PLUGIN_H_

#include <stdint.h>
#include <string.h>

#define LOCKSTEP_PLUGIN_ABI 1u

#ifdef __cplusplus
extern "C" {
#endif

enum LockstepInit {
  LOCKSTEP_INIT_CONSTANT = 0, /* all `value` */
  LOCKSTEP_INIT_UNIFORM = 1,  /* from [-value, value) */
  LOCKSTEP_INIT_NORMAL = 2    /* normal around 0, with standard deviation `value` */
};

typedef struct LockstepModelDescription {
  /* The handshake: these four fields stand here in every ABI. */
  uint32_t host_abi;      /* ABI of the worker */
  const char* host_torch; /* LibTorch of the worker, as "2.11.0" */
  uint32_t plugin_abi;    /* lockstep_handshake() sets this and the next */
  const char* plugin_torch;

  /* The shape of a sample. Image: channels, height and width. Row of a table: one channel a column,
     1 by 1. Sequence: tokens. All other fields are 0. */
  uint32_t channels;
  uint32_t height;
  uint32_t width;
  uint32_t tokens;
  uint32_t classes; /* number of labels; for tokens the size of the vocabulary */

  /* Call these in the order of your layers. Names are unique, as "fc1.weight". Both functions copy
   * their arguments and return the index of the new tensor, counted from 0. Initial values of
   * parameters depend on the job's seed and the index. Buffers are floats that forward() changes
   * while training (running statistics). After a step a buffer is the mean over its slots. */
  uint32_t (*add_parameter)(struct LockstepModelDescription* model, const char* name,
                            const int64_t* shape, uint32_t dims, enum LockstepInit init,
                            double value);
  uint32_t (*add_buffer)(struct LockstepModelDescription* model, const char* name, int64_t size,
                         float initial);
  void* host; /* the worker's own */

  /* The plug-in may set these. */
  void* instance;                 /* passed to forward() */
  void (*free_instance)(void*);   /* called once with `instance`, at the end */
  uint64_t values_per_batch_norm; /* the fewest values of one sample, per channel, that any
                                     batch norm averages over; 0: no batch norm */
} LockstepModelDescription;

typedef struct LockstepModelForward {
  void* instance;
  /* at::Tensor: (B, channels, height, width) floats, (B, channels) floats of rows, or (B, tokens)
     int64. With data.documents: pad there may be fewer tokens than describe() was told. */
  const void* input;
  const void* const* parameters; /* at::Tensor each, by index */
  const void* const* buffers;    /* at::Tensor each, (size); change them in place if training */
  uint32_t training;             /* 0: evaluation */
  /* at::Tensor; assign the logits to it, on the input's device: (B, classes), or (B, tokens,
     classes) */
  void* output;
} LockstepModelForward;

#define LOCKSTEP_METRICS 11

/* As LockstepModelForward, for a model with a loss of its own. */
typedef struct LockstepModelLosses {
  void* instance;
  const void* input;
  const void* labels; /* at::Tensor, int64: (B), or (B, tokens) for sequences */
  const void* const* parameters;
  const void* const* buffers;
  uint32_t training;
  /* at::Tensor of floats, (B) each, on the input's device. Assign the losses. Assign the weights if
     the mean loss is sum(losses) / sum(weights), and metrics as far as there are any; always the
     same ones. */
  void* losses;
  void* weights;
  void* metrics[LOCKSTEP_METRICS];
  const char* metric_names[LOCKSTEP_METRICS]; /* set these, too; strings of the plug-in's own */
} LockstepModelLosses;

#define LOCKSTEP_PLUGIN_EXPORT __attribute__((visibility("default")))

/* First call lockstep_handshake(model, TORCH_VERSION). If it returns 0, return at once. */
LOCKSTEP_PLUGIN_EXPORT void lockstep_model_describe(LockstepModelDescription* model);
LOCKSTEP_PLUGIN_EXPORT void lockstep_model_forward(LockstepModelForward* call);
LOCKSTEP_PLUGIN_EXPORT void lockstep_model_losses(LockstepModelLosses* call); /* optional */

/* Returns 1 if worker and plug-in fit together, else 0. */
static inline int lockstep_handshake(LockstepModelDescription* model, const char* torch_version) {
  model->plugin_abi = LOCKSTEP_PLUGIN_ABI;
  model->plugin_torch = torch_version;
  return model->host_abi == LOCKSTEP_PLUGIN_ABI && strcmp(model->host_torch, torch_version) == 0;
}

#ifdef __cplusplus
}
#endif

#endif /* LOCKSTEP_PLUGIN_H_ */
