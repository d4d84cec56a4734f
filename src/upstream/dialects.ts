import type { DialectName } from "../catalog/model.ts";
import type { Dialect } from "./dialect.ts";
import { dialectLlamaCpp } from "./dialect-llamacpp.ts";
import { dialectOllama } from "./dialect-ollama.ts";
import { dialectOpenai } from "./dialect-openai.ts";
import { dialectSglang } from "./dialect-sglang.ts";
import { dialectTei } from "./dialect-tei.ts";
import { dialectTgi } from "./dialect-tgi.ts";
import { dialectVllm } from "./dialect-vllm.ts";

/** Every family by the name that `tollgate.yaml` gives it. */
export const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
	openai: dialectOpenai,
	vllm: dialectVllm,
	sglang: dialectSglang,
	"llama.cpp": dialectLlamaCpp,
	ollama: dialectOllama,
	tgi: dialectTgi,
	tei: dialectTei,
};
