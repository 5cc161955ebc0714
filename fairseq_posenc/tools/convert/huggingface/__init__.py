"""To Hugging Face's transformers, and from there."""
