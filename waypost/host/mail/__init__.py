"""Mail's way in and out: the bus that takes it, the spool where no host runs, the courier that empties an outbox."""
