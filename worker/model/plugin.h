/* A model of your own in a shared library: model.name: plugin, model.path: libmymodel.so.
 *
 * A plug-in exports two functions, declared below. describe() is called once, before anything else:
 * it shakes hands, then says what the model consists of. forward() is called for every slot of
 * every step. This header is all that a plug-in includes of Lockstep; it is plain C, and only grows
 * with LOCKSTEP_PLUGIN_ABI. PLUGIN.md shows how to write, build and run one.
 *
 * TENSORS cross as pointers to at::Tensor, not as plain buffers, so that LibTorch's autograd
 * computes the backward: a plug-in of plain buffers would have to bring one, layer by layer. The
 * price is that plug-in and worker must have the same LibTorch; the handshake makes sure of it. Do
 * not link a plug-in with LibTorch: it uses what the worker has loaded.
 *
 * ERRORS leave either function as a C++ exception, whose text is shown with the plug-in's path.
 *
 * THREADS: one call at a time.
 *
 * WHAT LOCKSTEP KEEPS. Same bits for any number of workers hold for a plug-in too, if forward() is
 * a function of its arguments: no state from call to call but the buffers it is given, no clock, no
 * generator but LibTorch's default one for the CPU. That one is seeded before every call, from
 * seed, step and slot, so at::dropout and the like may be used.
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
  /* The handshake: these four stand here in every ABI. */
  uint32_t host_abi;      /* of the worker */
  const char* host_torch; /* its LibTorch, as "2.11.0" */
  uint32_t plugin_abi;    /* set by lockstep_handshake(), likewise the next */
  const char* plugin_torch;

  /* The samples. Of an image channels, height and width; of a row of a table as many channels as it
     has columns, of 1 by 1; of a sequence tokens; else 0. */
  uint32_t channels;
  uint32_t height;
  uint32_t width;
  uint32_t tokens;
  uint32_t classes; /* of an image's label; for tokens the vocabulary */

  /* Call these in the order of your layers. Names are unique, as "fc1.weight"; both copy what they
   * are given and return its index, counted from 0. Initial values of parameters depend on the
   * job's seed and the index. Buffers are floats that forward() changes while training (running
   * statistics): a step's result is the mean over its slots. */
  uint32_t (*add_parameter)(struct LockstepModelDescription* model, const char* name,
                            const int64_t* shape, uint32_t dims, enum LockstepInit init,
                            double value);
  uint32_t (*add_buffer)(struct LockstepModelDescription* model, const char* name, int64_t size,
                         float initial);
  void* host; /* the worker's own */

  /* Set by the plug-in, where it wants to. */
  void* instance;                 /* given to forward() */
  void (*free_instance)(void*);   /* called once with it, at the end */
  uint64_t values_per_batch_norm; /* the fewest values of one sample, per channel, over which a
                                     batch norm goes; 0: there is none */
} LockstepModelDescription;

typedef struct LockstepModelForward {
  void* instance;
  /* at::Tensor: (B, channels, height, width) floats, (B, channels) of rows, or (B, tokens) int64;
     with data.documents: pad also fewer tokens than the samples' shape says */
  const void* input;
  const void* const* parameters; /* at::Tensor each, by index */
  const void* const* buffers;    /* at::Tensor each, (size); to be changed in place, if training */
  uint32_t training;             /* 0: evaluation */
  /* at::Tensor, to be assigned: logits (B, classes), or (B, tokens, classes) */
  void* output;
} LockstepModelForward;

#define LOCKSTEP_PLUGIN_EXPORT __attribute__((visibility("default")))

/* First call lockstep_handshake(model, TORCH_VERSION), and return at once where it is 0. */
LOCKSTEP_PLUGIN_EXPORT void lockstep_model_describe(LockstepModelDescription* model);
LOCKSTEP_PLUGIN_EXPORT void lockstep_model_forward(LockstepModelForward* call);

/* 1 where worker and plug-in fit together. */
static inline int lockstep_handshake(LockstepModelDescription* model, const char* torch_version) {
  model->plugin_abi = LOCKSTEP_PLUGIN_ABI;
  model->plugin_torch = torch_version;
  return model->host_abi == LOCKSTEP_PLUGIN_ABI && strcmp(model->host_torch, torch_version) == 0;
}

#ifdef __cplusplus
}
#endif

#endif /* LOCKSTEP_PLUGIN_H_ */
