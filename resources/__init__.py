"""Translations, formula cards and icons: data without code."""
