#include "worker/optim/kernels.h"

#include "comm/base/clones.h"

namespace lockstep {
namespace {

LOCKSTEP_CLONES
void sgd_plain(float* __restrict p, const float* __restrict g, uint64_t n, SgdFactors f) {
  for (uint64_t i = 0; i < n; ++i) sgd_element(p[i], g[i], f);
}

LOCKSTEP_CLONES
void sgd_momentum(float* __restrict p, float* __restrict b, const float* __restrict g, uint64_t n,
                  SgdFactors f) {
  for (uint64_t i = 0; i < n; ++i) sgd_momentum_element(p[i], b[i], g[i], f);
}

LOCKSTEP_CLONES
void sgd_nesterov(float* __restrict p, float* __restrict b, const float* __restrict g, uint64_t n,
                  SgdFactors f) {
  for (uint64_t i = 0; i < n; ++i) sgd_nesterov_element(p[i], b[i], g[i], f);
}

LOCKSTEP_CLONES
void adam(float* __restrict p, float* __restrict m, float* __restrict v, const float* __restrict g,
          uint64_t n, AdamFactors f) {
  for (uint64_t i = 0; i < n; ++i) adam_element(p[i], m[i], v[i], g[i], f);
}

LOCKSTEP_CLONES
void nadam(float* __restrict p, float* __restrict m, float* __restrict v, const float* __restrict g,
           uint64_t n, NadamFactors f) {
  for (uint64_t i = 0; i < n; ++i) nadam_element(p[i], m[i], v[i], g[i], f);
}

LOCKSTEP_CLONES
void rmsprop_plain(float* __restrict p, float* __restrict v, const float* __restrict g, uint64_t n,
                   RmspropFactors f) {
  for (uint64_t i = 0; i < n; ++i) rmsprop_element(p[i], v[i], nullptr, nullptr, g[i], f);
}

LOCKSTEP_CLONES
void rmsprop_centered(float* __restrict p, float* __restrict v, float* __restrict a,
                      const float* __restrict g, uint64_t n, RmspropFactors f) {
  for (uint64_t i = 0; i < n; ++i) rmsprop_element(p[i], v[i], &a[i], nullptr, g[i], f);
}

LOCKSTEP_CLONES
void rmsprop_momentum(float* __restrict p, float* __restrict v, float* __restrict b,
                      const float* __restrict g, uint64_t n, RmspropFactors f) {
  for (uint64_t i = 0; i < n; ++i) rmsprop_element(p[i], v[i], nullptr, &b[i], g[i], f);
}

LOCKSTEP_CLONES
void rmsprop_both(float* __restrict p, float* __restrict v, float* __restrict a,
                  float* __restrict b, const float* __restrict g, uint64_t n, RmspropFactors f) {
  for (uint64_t i = 0; i < n; ++i) rmsprop_element(p[i], v[i], &a[i], &b[i], g[i], f);
}

LOCKSTEP_CLONES
void adagrad(float* __restrict p, float* __restrict s, const float* __restrict g, uint64_t n,
             AdagradFactors f) {
  for (uint64_t i = 0; i < n; ++i) adagrad_element(p[i], s[i], g[i], f);
}

LOCKSTEP_CLONES
void adadelta(float* __restrict p, float* __restrict v, float* __restrict d,
              const float* __restrict g, uint64_t n, AdadeltaFactors f) {
  for (uint64_t i = 0; i < n; ++i) adadelta_element(p[i], v[i], d[i], g[i], f);
}

}  // namespace

void sgd_update(float* params, float* momentum_buffer, const float* grads, uint64_t n,
                bool nesterov, const SgdFactors& f) {
  if (momentum_buffer == nullptr) {
    sgd_plain(params, grads, n, f);
  } else if (nesterov) {
    sgd_nesterov(params, momentum_buffer, grads, n, f);
  } else {
    sgd_momentum(params, momentum_buffer, grads, n, f);
  }
}

void adam_update(float* params, float* exp_avg, float* exp_avg_sq, const float* grads, uint64_t n,
                 const AdamFactors& f) {
  adam(params, exp_avg, exp_avg_sq, grads, n, f);
}

void nadam_update(float* params, float* exp_avg, float* exp_avg_sq, const float* grads, uint64_t n,
                  const NadamFactors& f) {
  nadam(params, exp_avg, exp_avg_sq, grads, n, f);
}

void rmsprop_update(float* params, float* square_avg, float* grad_avg, float* momentum_buffer,
                    const float* grads, uint64_t n, const RmspropFactors& f) {
  if (grad_avg == nullptr && momentum_buffer == nullptr) {
    rmsprop_plain(params, square_avg, grads, n, f);
  } else if (momentum_buffer == nullptr) {
    rmsprop_centered(params, square_avg, grad_avg, grads, n, f);
  } else if (grad_avg == nullptr) {
    rmsprop_momentum(params, square_avg, momentum_buffer, grads, n, f);
  } else {
    rmsprop_both(params, square_avg, grad_avg, momentum_buffer, grads, n, f);
  }
}

void adagrad_update(float* params, float* sum, const float* grads, uint64_t n,
                    const AdagradFactors& f) {
  adagrad(params, sum, grads, n, f);
}

void adadelta_update(float* params, float* square_avg, float* acc_delta, const float* grads,
                     uint64_t n, const AdadeltaFactors& f) {
  adadelta(params, square_avg, acc_delta, grads, n, f);
}

}  // namespace lockstep
