"""Placeholder map."""
