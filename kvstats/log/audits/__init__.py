"""The checks of an audit, by topic."""
