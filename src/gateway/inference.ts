import { chat } from "./chat/chat-request.ts";
import { completions } from "./completions/completions.ts";
import { embeddings } from "./embeddings/embeddings.ts";
import { images } from "./images/images.ts";
import { rerank } from "./rerank/rerank.ts";
import { servedEndpoint } from "./serve/serve.ts";
import { transcriptions } from "./transcriptions/transcriptions.ts";

export const INFERENCE_ENDPOINTS = {
	"/v1/chat/completions": servedEndpoint(chat),
	"/v1/completions": servedEndpoint(completions),
	"/v1/embeddings": servedEndpoint(embeddings),
	"/v1/audio/transcriptions": servedEndpoint(transcriptions),
	"/v1/images/generations": servedEndpoint(images),
	"/v1/rerank": servedEndpoint(rerank),
} as const;
