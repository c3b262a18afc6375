"""The chapters' exercises: an answer is checked, a hint given in the reader's language, the solution shown when asked.

A chapter's exercises are in a module of its number (`ch05`); a notebook in a folder named `zh` is read in Chinese.
"""

from vizggml.lessons.asking import ask_llama_cpp
from vizggml.lessons.exercise import Exercise, Text, check, solution
from vizggml.lessons.goldens import golden
from vizggml.lessons.telling import tell

__all__ = ["Exercise", "Text", "ask_llama_cpp", "check", "golden", "solution", "tell"]
