"""Writes a folder as Hugging Face's libraries read it: a Llama of random weights, two layers, a byte-level vocabulary.

Its text is noise; what it is for is the server around it: token counts, tools, limits, streams, endings. About 2 MB.
Usage: python tiny_hf.py FOLDER CONTEXT          (needs the packages tokenizers, safetensors and numpy)
"""

import json
import os
import sys

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

WIDTH, LAYERS, HEADS, FEED_FORWARD = 128, 2, 4, 256
SEED = 20261127
SPECIAL = ["<unk>", "<s>", "</s>", "<tool_call>", "</tool_call>", "<think>", "</think>"]
# Some words, so that tokens are not bytes.
MERGES = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "a"), ("i", "n"), ("q", "u")]
LETTERS = "Ġabcdefghijklmnopqrstuvwxyz.,"
TEMPLATE = (
    "{% for tool in tools or [] %}tool: {{ tool | tojson }}\n{% endfor %}"
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}"
    "{% for call in message['tool_calls'] or [] %}{{ call | tojson }}{% endfor %}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def write(folder: str, context: int) -> None:
    os.makedirs(folder, exist_ok=True)
    count = write_tokenizer(folder)
    write_json(folder, "config.json", {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": WIDTH,
        "intermediate_size": FEED_FORWARD,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "max_position_embeddings": context,
        "rms_norm_eps": 1e-5,
        "vocab_size": count,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
    })
    save_file(weights(count), os.path.join(folder, "model.safetensors"), {"format": "pt"})


def write_tokenizer(folder: str) -> int:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = SPECIAL + letters + [left + right for left, right in MERGES]
    tokenizer = Tokenizer(models.BPE({token: at for at, token in enumerate(tokens)}, MERGES))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL[:3]])
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    write_json(folder, "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "<unk>",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "chat_template": TEMPLATE,
    })
    return len(tokens)


def weights(count: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(SEED)

    def some(*shape: int) -> np.ndarray:
        return random.normal(0, 0.4, shape).astype(np.float32)

    ones = np.ones(WIDTH, dtype=np.float32)
    # What is neither letter nor word has no weight: of thirty others one is always above it, so that an answer is text
    # and ends where it is told to.
    head = some(count, WIDTH)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    for at in range(len(SPECIAL) + len(letters)):
        if at < len(SPECIAL) or letters[at - len(SPECIAL)] not in LETTERS:
            head[at] = 0
    all_weights = {"model.embed_tokens.weight": some(count, WIDTH), "lm_head.weight": head, "model.norm.weight": ones}
    for layer in range(LAYERS):
        block = f"model.layers.{layer}"
        all_weights[f"{block}.input_layernorm.weight"] = ones
        all_weights[f"{block}.post_attention_layernorm.weight"] = ones
        for part in ("q_proj", "k_proj", "v_proj", "o_proj"):
            all_weights[f"{block}.self_attn.{part}.weight"] = some(WIDTH, WIDTH)
        all_weights[f"{block}.mlp.gate_proj.weight"] = some(FEED_FORWARD, WIDTH)
        all_weights[f"{block}.mlp.up_proj.weight"] = some(FEED_FORWARD, WIDTH)
        all_weights[f"{block}.mlp.down_proj.weight"] = some(WIDTH, FEED_FORWARD)
    return all_weights


def write_json(folder: str, name: str, value: dict) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file)


write(sys.argv[1], int(sys.argv[2]))
