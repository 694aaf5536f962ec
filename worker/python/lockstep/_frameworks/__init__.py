"""Loops that others wrote, as loops over run.batches(): fit() for a LightningModule (_fit.py) and
Trainer for Hugging Face's (_hf.py). Neither framework is imported before a script asks for it.

Their hooks fall into two places. Hooks that compute a slot run in the loop's body, on the worker
that has the slot, and again if the slot is computed again. Hooks that change the state run when a
step is applied, alike on every worker.
"""
