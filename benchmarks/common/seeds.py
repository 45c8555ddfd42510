"""Runs of several seeds as one."""


def join_seeds(versions, f1):
    """Label lists of sentences: the labels by all seeds, one after the other.

    A test that swaps sentences then swaps all seeds of a sentence. For F1, "O" ends every chunk.
    """
    end = ["O"] if f1 else []
    return [
        [label for labels in group for label in (*labels, *end)]
        for group in zip(*versions, strict=True)
    ]
