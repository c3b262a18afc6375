"""Train the tiny model: a llama of width 256 with its own byte-level BPE vocabulary, on stories from a grammar.

    python -m pip install torch tokenizers
    python assets/train_tiny.py                 # writes assets/tiny.gguf; the same file from the same seed

The shape is chosen for reading, not for skill: 256 wide so that a row is one 256-element block, grouped heads (4 query
and 2 key/value), 4 layers, tied embeddings. Queries and keys are rotated in adjacent pairs, as ggml does for llama,
so no weight is permuted on the way into the file.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
from pathlib import Path

import numpy as np
import torch
from stories import stories
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn
from torch.nn import functional

SEED = 20261
VOCAB, WIDTH, LAYERS, HEADS, KV_HEADS, FFN, CONTEXT = 832, 256, 4, 4, 2, 768, 512
EPS, ROPE_BASE = 1e-5, 10000.0
BOS, EOS = "<s>", "</s>"
HERE = Path(__file__).parent


def train_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=[BOS, EOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(itertools.islice(stories(SEED), 20000), trainer)
    return tokenizer


class RMSNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, (WIDTH,), self.weight, EPS)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        head = WIDTH // HEADS
        self.attn_norm, self.ffn_norm = RMSNorm(), RMSNorm()
        self.attn_q = nn.Linear(WIDTH, HEADS * head, bias=False)
        self.attn_k = nn.Linear(WIDTH, KV_HEADS * head, bias=False)
        self.attn_v = nn.Linear(WIDTH, KV_HEADS * head, bias=False)
        self.attn_output = nn.Linear(HEADS * head, WIDTH, bias=False)
        self.ffn_gate = nn.Linear(WIDTH, FFN, bias=False)
        self.ffn_up = nn.Linear(WIDTH, FFN, bias=False)
        self.ffn_down = nn.Linear(FFN, WIDTH, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        n, t, _ = x.shape
        h = self.attn_norm(x)
        q = rotate(self.attn_q(h).view(n, t, HEADS, -1).transpose(1, 2), cos, sin)
        k = rotate(self.attn_k(h).view(n, t, KV_HEADS, -1).transpose(1, 2), cos, sin)
        v = self.attn_v(h).view(n, t, KV_HEADS, -1).transpose(1, 2)
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.attn_output(out.transpose(1, 2).reshape(n, t, -1))
        h = self.ffn_norm(x)
        return x + self.ffn_down(functional.silu(self.ffn_gate(h)) * self.ffn_up(h))


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token_embd = nn.Embedding(VOCAB, WIDTH)
        self.blk = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.output_norm = RMSNorm()
        for name, p in self.named_parameters():
            if p.dim() == 2:
                deep = name.endswith(("attn_output.weight", "ffn_down.weight"))
                nn.init.normal_(p, std=0.02 if not deep else 0.02 / math.sqrt(2 * LAYERS))
        head = WIDTH // HEADS
        angle = torch.outer(torch.arange(CONTEXT), ROPE_BASE ** (-torch.arange(0, head, 2) / head))
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token_embd(ids)
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        for layer in self.blk:
            x = layer(x, cos, sin)
        return self.output_norm(x) @ self.token_embd.weight.T


def batches(tokenizer: Tokenizer, n: int, length: int):
    """Rows of `length + 1` tokens; each row begins with a story, so that position 0 is always the first token."""
    bos, eos = tokenizer.token_to_id(BOS), tokenizer.token_to_id(EOS)
    source = stories(SEED + 1)
    while True:
        rows = []
        while len(rows) < n:
            row: list[int] = []
            while len(row) <= length:
                row += [bos, *tokenizer.encode(next(source)).ids, eos]
            rows.append(row[: length + 1])
        yield torch.tensor(rows)


def train(tokenizer: Tokenizer, steps: int, batch: int, length: int) -> Llama:
    torch.manual_seed(SEED)
    random.seed(SEED)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    model = Llama()
    decay = [p for p in model.parameters() if p.dim() == 2]
    rest = [p for p in model.parameters() if p.dim() != 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))
    source = batches(tokenizer, batch, length)
    for step in range(steps):
        rate = min(1.0, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * step / steps))
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * max(rate, 0.01)
        ids = next(source)
        loss = functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 25 == 0 or step == steps - 1:
            print(f"step {step:5d}  loss {loss.item():.4f}", flush=True)
        if step % 250 == 0 and step:
            print(tell(model, tokenizer, "Once upon a time"), flush=True)
    return model


@torch.no_grad()
def tell(model: Llama, tokenizer: Tokenizer, prompt: str) -> str:
    """The greedy story that follows `prompt`."""
    ids = [tokenizer.token_to_id(BOS), *tokenizer.encode(prompt).ids]
    while len(ids) < 180 and ids[-1] != tokenizer.token_to_id(EOS):
        ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    return tokenizer.decode(ids[1:])


def write(path: Path, tokenizer: Tokenizer, weights: dict[str, np.ndarray]) -> None:
    """Two-dimensional weights as Q8_0, norms as F32."""
    from vizggml.ggml.gguf import TensorData, write_gguf
    from vizggml.ggml.quants import quantize
    from vizggml.ggml.types import F32, Q8_0

    vocab = tokenizer.get_vocab()
    tokens = sorted(vocab, key=lambda token: vocab[token])
    merges = [" ".join(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    metadata: dict[str, object] = {
        "general.architecture": "llama",
        "general.name": "vizggml tiny stories",
        "general.license": "mit",
        "general.file_type": np.uint32(7),
        "llama.block_count": np.uint32(LAYERS),
        "llama.context_length": np.uint32(CONTEXT),
        "llama.embedding_length": np.uint32(WIDTH),
        "llama.feed_forward_length": np.uint32(FFN),
        "llama.attention.head_count": np.uint32(HEADS),
        "llama.attention.head_count_kv": np.uint32(KV_HEADS),
        "llama.attention.layer_norm_rms_epsilon": np.float32(EPS),
        "llama.rope.dimension_count": np.uint32(WIDTH // HEADS),
        "llama.rope.freq_base": np.float32(ROPE_BASE),
        "llama.vocab_size": np.uint32(VOCAB),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": np.array([3 if t in (BOS, EOS) else 1 for t in tokens], np.int32),
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": np.uint32(vocab[BOS]),
        "tokenizer.ggml.eos_token_id": np.uint32(vocab[EOS]),
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": False,
    }
    tensors = []
    for name, values in weights.items():
        kind = Q8_0 if values.ndim == 2 else F32
        data = quantize(Q8_0, values) if values.ndim == 2 else values.astype(np.float32)
        tensors.append(TensorData(name, kind, tuple(reversed(values.shape)), data))
    write_gguf(path, metadata, tensors)
    print(f"{path}: {path.stat().st_size} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1700)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--length", type=int, default=176)
    parser.add_argument("--out", type=Path, default=HERE / "tiny.gguf")
    parser.add_argument(
        "--checkpoint", type=Path, help="keep the float weights here, and start from them when it exists"
    )
    args = parser.parse_args()
    tokenizer = train_tokenizer()
    if args.checkpoint and args.checkpoint.exists():
        weights = dict(np.load(args.checkpoint))
    else:
        model = train(tokenizer, args.steps, args.batch, args.length)
        weights = {k: v.detach().numpy() for k, v in model.state_dict().items()}
        if args.checkpoint:
            np.savez(args.checkpoint, **weights)
    write(args.out, tokenizer, weights)


if __name__ == "__main__":
    main()
