"""Figures for a paper, from results alone: one command, the same bytes for the same runs."""

from attcem.figures.draw import FIGURES, FORMATS, draw_figures

__all__ = ["FIGURES", "FORMATS", "draw_figures"]
