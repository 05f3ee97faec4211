"""What it means: intervals, AUC and robustness."""
