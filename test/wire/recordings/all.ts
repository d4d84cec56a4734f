import type { Recording } from "../recording.ts";
import { DEEPSEEK, FIREWORKS, GROQ, MISTRAL, TOGETHER, XAI } from "./hosted.ts";
import { LLAMA_CPP, LLAMA_CPP_PYTHON } from "./llama-cpp.ts";
import { LITELLM, LM_STUDIO, OPENROUTER } from "./local-and-proxies.ts";
import { OLLAMA, TGI } from "./ollama-tgi.ts";
import { SGLANG } from "./sglang.ts";
import { OTHERS, THE_INTERFACE } from "./the-interface.ts";
import { VLLM } from "./vllm.ts";

export const RECORDINGS: readonly Recording[] = [
	...VLLM,
	...SGLANG,
	...LLAMA_CPP,
	...LLAMA_CPP_PYTHON,
	...OLLAMA,
	...TGI,
	...LM_STUDIO,
	...LITELLM,
	...OPENROUTER,
	...GROQ,
	...XAI,
	...MISTRAL,
	...DEEPSEEK,
	...TOGETHER,
	...FIREWORKS,
	...THE_INTERFACE,
	...OTHERS,
];
