import { chat } from "./chat/chat-request.ts";
import { completions } from "./completions/completions.ts";
import { embeddings } from "./embeddings/embeddings.ts";
import { images } from "./images/images.ts";
import { rerank } from "./rerank/rerank.ts";
import { served } from "./serve/serve.ts";
import { transcriptions } from "./transcriptions/transcriptions.ts";

/** Inference endpoints by path. */
export const INFERENCE_ENDPOINTS = {
	"/v1/chat/completions": served(chat),
	"/v1/completions": served(completions),
	"/v1/embeddings": served(embeddings),
	"/v1/audio/transcriptions": served(transcriptions),
	"/v1/images/generations": served(images),
	"/v1/rerank": served(rerank),
} as const;
