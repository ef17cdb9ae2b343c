"""``python -m kvstats`` does what its command does."""

from kvstats.cli import main

if __name__ == "__main__":
    main()
