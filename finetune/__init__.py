"""Supervised fine-tuning (paper Section 5): the loss, one step, and what builds on them."""
