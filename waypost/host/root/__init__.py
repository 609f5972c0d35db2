"""The root of a host's actors: what it starts, keeps asleep, wakes, exchanges and ends."""
