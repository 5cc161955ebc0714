"""How often properties are tried.

Examples are the same in every run. ``HYPOTHESIS_PROFILE=search`` tries many new ones.
"""

import os

from hypothesis import HealthCheck, settings

# fixtures are functions without a state of their own, or models that are not changed
settings.register_profile(
    "suite",
    max_examples=30,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile(
    "search", settings.get_profile("suite"), max_examples=1000, derandomize=False
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))
