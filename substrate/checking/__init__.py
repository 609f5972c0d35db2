"""A history checked from outside, by anyone who has a copy: objects, signatures, and the writer's own rules."""
