import type { Language } from "../base/language.ts";
import { type TextId, type TextValues, write } from "../base/translate.ts";
import type { ServiceName, StatusAnswer } from "./status-answer.ts";

/** Writes a text of the page in its reader's language. The JSON is in English, for programs. */
export interface StatusTexts {
	(id: TextId, values?: TextValues): string;
	readonly language: Language;
}

export function statusTexts(language: Language): StatusTexts {
	return Object.assign((id: TextId, values?: TextValues) => write(language, id, values), { language });
}

export const HEADLINES = {
	operational: "All services are connected",
	degraded: "Some services are not connected",
	unavailable: "No service is connected",
} as const satisfies Readonly<Record<StatusAnswer["status"], TextId>>;

/** Those that are not translated are names of endpoints. */
export const SERVICES: Readonly<Record<ServiceName, string>> = {
	chat: "Chat completions",
	completions: "Completions",
	embeddings: "Embeddings",
	transcription: "Audio transcription",
	image_generation: "Image generation",
	rerank: "Reranking",
	batch: "Managed batches",
};

/** Kinds of days; each has its own shape. */
export const DAY_KINDS = {
	up: "Operational",
	degraded: "Degraded at times",
	partly: "Down at times",
	down: "Down for most of the day",
	none: "No data",
} as const satisfies Readonly<Record<string, TextId>>;

export type DayKind = keyof typeof DAY_KINDS;
