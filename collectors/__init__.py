"""The recorder: runs a language model with its full and with compressed key-value caches and logs both.

Needs the extra ``collect`` (torch and transformers); `kvstats` itself never imports this package.
"""
