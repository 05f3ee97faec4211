"""The RRB protocol: does a model survive rewritings of a problem, and other problems beside it (Golikov et al.)?"""
