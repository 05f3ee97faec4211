"""The LPDS protocol: how hard is a variation, and which ones break the model (Mondorf et al.)."""
