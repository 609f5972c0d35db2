"""Looking after a deployment as a whole: backups, restores, imports."""
