"""Parts of the models: attention that takes an encoding's terms, and its backends."""
