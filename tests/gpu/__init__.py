"""What a real driver answers: `make test-gpu`, its captures, and their replay."""
