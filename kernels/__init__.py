"""Accelerator kernels: the Levenshtein distances of many token sequences from many others."""
