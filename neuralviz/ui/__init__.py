"""What the pages of the app share."""
