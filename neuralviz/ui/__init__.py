"""The pages of the app, and what they share."""

from pathlib import Path

NAVIGATION = Path(__file__).with_name("navigation.py")  # the script that every visit runs
