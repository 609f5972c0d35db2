"""The file system as the storage sees it: every change of it one numbered point, every name in one place."""
