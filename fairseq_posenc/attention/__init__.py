"""Parts of the models: attention that takes an encoding's terms, and what it is computed with."""
