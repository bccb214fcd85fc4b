"""What the page of the corpus map is made of: corpora, settings, work, maps, lists."""
