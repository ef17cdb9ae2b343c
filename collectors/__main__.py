"""``python -m collectors`` does what its command does."""

from collectors.cli import main

if __name__ == "__main__":
    main()
