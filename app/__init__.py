"""The Qt application over `model_core`."""
