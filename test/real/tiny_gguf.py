"""Writes a GGUF model of random weights that llama.cpp loads: the architecture of Llama, two layers, 291 tokens.

Its text is noise; what it is for is the server around it: token counts, limits, streams, endings. About 0.6 MB.
Usage: python tiny_gguf.py FILE CONTEXT          (needs the packages gguf and numpy)
"""

import sys

import gguf
import numpy as np

WIDTH, LAYERS, HEADS, FEED_FORWARD = 64, 2, 4, 128
SEED = 20261122

# A sentencepiece vocabulary: three special tokens, one token a byte, and some words, so that tokens are not bytes.
SPECIAL = [("<unk>", gguf.TokenType.UNKNOWN), ("<s>", gguf.TokenType.CONTROL), ("</s>", gguf.TokenType.CONTROL)]
BYTES = [(f"<0x{byte:02X}>", gguf.TokenType.BYTE) for byte in range(256)]
LETTERS = [(letter, gguf.TokenType.NORMAL) for letter in "\u2581abcdefghijklmnopqrstuvwxyz.,"]
VOCABULARY = SPECIAL + BYTES + LETTERS + [("\u2581the", gguf.TokenType.NORMAL), ("\u2581a", gguf.TokenType.NORMAL), ("\u2581th", gguf.TokenType.NORMAL)]


def write(path: str, context: int) -> None:
    random = np.random.default_rng(SEED)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny-random")
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(VOCABULARY))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token for token, _ in VOCABULARY])
    writer.add_token_scores([-float(index) for index in range(len(VOCABULARY))])
    writer.add_token_types([kind for _, kind in VOCABULARY])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(
        "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant:"
    )

    def weights(name: str, *shape: int) -> None:
        writer.add_tensor(name, random.normal(0, 0.4, shape).astype(np.float32))

    def ones(name: str) -> None:
        writer.add_tensor(name, np.ones(WIDTH, dtype=np.float32))

    weights("token_embd.weight", len(VOCABULARY), WIDTH)
    # What is neither letter nor word has no weight: of thirty others one is always above it, so that an answer is text
    # and ends where it is told to.
    output = random.normal(0, 0.4, (len(VOCABULARY), WIDTH)).astype(np.float32)
    output[: len(SPECIAL) + len(BYTES)] = 0
    writer.add_tensor("output.weight", output)
    ones("output_norm.weight")
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        ones(f"{block}.attn_norm.weight")
        ones(f"{block}.ffn_norm.weight")
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights(f"{block}.{part}.weight", WIDTH, WIDTH)
        weights(f"{block}.ffn_gate.weight", FEED_FORWARD, WIDTH)
        weights(f"{block}.ffn_up.weight", FEED_FORWARD, WIDTH)
        weights(f"{block}.ffn_down.weight", WIDTH, FEED_FORWARD)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


write(sys.argv[1], int(sys.argv[2]))
