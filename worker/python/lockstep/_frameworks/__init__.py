"""Loops that others wrote, as loops over run.batches(): fit() for a LightningModule (_fit.py) and
Trainer for Hugging Face's (_hf.py). Neither framework is imported before a script asks for it.

Their hooks fall into two places. What computes a slot runs in the loop's body, on whichever worker
has the slot, and again if the slot is computed again. What changes the state runs when a step is
applied, on every worker alike.
"""
