"""Figures: arrays and labels in, plotly figure out."""
