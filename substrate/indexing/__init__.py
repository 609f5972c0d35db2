"""What is known of runs without reading them: in memory, and in a derived index that can always be made again."""
