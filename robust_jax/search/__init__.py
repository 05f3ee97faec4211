"""Where a model breaks: beam search and its random baseline over any search space."""
