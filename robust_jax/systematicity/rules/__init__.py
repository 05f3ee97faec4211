"""The hidden rules of the families: what they look like and what they do."""
