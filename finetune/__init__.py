"""Supervised fine-tuning on the variations that a search found, by difficulty (LPDS, Section 5)."""
