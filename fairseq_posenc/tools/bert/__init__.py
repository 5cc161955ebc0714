"""Raw documents to the data of masked language models."""
