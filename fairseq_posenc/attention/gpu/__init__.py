"""Attention on a GPU where torch's own cannot do it; imported only there, as it needs Triton."""
