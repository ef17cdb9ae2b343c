"""One Hypothesis profile: the same examples in every run, however slow the machine."""

from hypothesis import settings

settings.register_profile("kvstats", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("kvstats")
