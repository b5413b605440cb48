"""The parts of scripts/peer.py."""
