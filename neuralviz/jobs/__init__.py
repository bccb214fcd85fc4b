"""Long work beside whoever asked for it."""
