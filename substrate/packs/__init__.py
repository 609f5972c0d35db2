"""Git's formats as bytes: objects, trees, packs and their indexes; written here, read by stock git."""
