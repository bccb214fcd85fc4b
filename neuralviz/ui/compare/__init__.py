"""What the compare page is made of: its settings, its run, what it shows."""
