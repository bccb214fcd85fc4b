"""What the pages of the app share."""

from pathlib import Path

NAVIGATION = Path(__file__).with_name("navigation.py")
"""The script that every visit runs."""
