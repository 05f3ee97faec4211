"""The systematicity protocol: does a model solve every isomorphic variant of a rule-induction task (Schug and Lake)?"""
