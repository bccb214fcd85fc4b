"""Teach an encoder on one's own texts: pairs, the contrastive loop, what it leaves behind."""
