"""The chat template around a prompt, applied once, so that no special token is doubled."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from kvstats.errors import InputError

__all__ = ["chat_frame"]

MARK = "<<user turn>>"
FIXED_DATE = "01 January 2025"


def chat_frame(tokenizer: PreTrainedTokenizerBase, replies: Sequence[str] = ()) -> list[str]:
    """Return what the chat template puts before, between and after the texts of the user's turns.

    The template is applied to a mark in place of each of the user's texts. A begin-of-sequence token is
    there once if the template writes one, and else not at all, as long as the pieces are tokenised without
    adding special tokens.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
        A tokenizer with a chat template.
    replies : sequence of str
        What the assistant says after each of the user's turns but the last.

    Returns
    -------
    list of str, length ``len(replies) + 2``
        What stands before the first text of the user, between one and the next, and after the last one.
    """
    if not tokenizer.chat_template:
        raise InputError.argument(
            "make_example",
            "tokenizer",
            tokenizer.name_or_path,
            "has no chat template",
            "take an instruction-tuned model",
        )
    chat = [{"role": "user", "content": MARK}]
    for reply in replies:
        chat += [{"role": "assistant", "content": reply}, {"role": "user", "content": MARK}]
    # Some templates write today's date unless they are given one; prompts must not change overnight.
    text = str(
        tokenizer.apply_chat_template(
            chat, tokenize=False, add_generation_prompt=True, date_string=FIXED_DATE
        )
    )
    turns = len(replies) + 1
    if text.count(MARK) != turns:
        raise InputError.argument(
            "make_example",
            "tokenizer",
            tokenizer.name_or_path,
            f"has a chat template that writes the user's text {text.count(MARK)} times in {turns} turns",
            "take a model whose template writes each turn once",
        )
    return text.split(MARK)
