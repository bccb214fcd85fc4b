"""What a server for many people needs beside its pages: health, metrics, and logs."""
