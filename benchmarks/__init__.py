"""Figures that can be compared: ratios within one run, beside a peer or a raw limit.

``python -m benchmarks`` runs all of them.
"""
