"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import settings

# A deadline per example would make the tests depend on what else the machine does.
settings.register_profile("meshwright", deadline=None)
settings.load_profile("meshwright")
