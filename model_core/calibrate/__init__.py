"""Fits efficiency factors to published or measured latencies."""

from model_core.calibrate.fit import Fit, FitError, Residual, fit_file
from model_core.calibrate.report import calibration_document, calibration_text, fit_lines

__all__ = ["Fit", "FitError", "Residual", "calibration_document", "calibration_text", "fit_file", "fit_lines"]
