import { BatchRequestBody } from "../batches/batch-answers.ts";
import { ChatRequestBody } from "../chat/chat-request.ts";
import { CompletionRequestBody } from "../completions/completions.ts";
import { EmbeddingRequestBody } from "../embeddings/embeddings.ts";
import { ImageRequestBody } from "../images/images.ts";
import { RerankRequestBody } from "../rerank/rerank.ts";
import { TranscriptionRequestForm } from "../transcriptions/transcriptions-request.ts";
import * as ANSWERS from "./openapi-answers.ts";

type Json = Readonly<Record<string, unknown>>;

const BYTES = { contentMediaType: "application/octet-stream" };
const REQUESTS = {
	ChatRequest: ChatRequestBody,
	CompletionRequest: CompletionRequestBody,
	EmbeddingRequest: EmbeddingRequestBody,
	TranscriptionRequest: {
		...TranscriptionRequestForm,
		properties: {
			...TranscriptionRequestForm.properties,
			file: {
				description:
					"The recording, at most 24 hours long: FLAC, MP3, MP4 or M4A (AAC, ALAC), Ogg (Opus, Vorbis), WAV or WebM.",
				...BYTES,
			},
		},
		required: ["model", "file"],
	},
	ImageRequest: ImageRequestBody,
	RerankRequest: RerankRequestBody,
	FileUpload: {
		type: "object",
		properties: {
			file: { description: "A JSONL file with one request per line.", ...BYTES },
			purpose: { type: "string", enum: ["batch"] },
			"expires_after[anchor]": { type: "string", enum: ["created_at"] },
			"expires_after[seconds]": {
				type: "string",
				pattern: "^\\d+$",
				description: "Seconds until the file is deleted, from 3600 to 2592000 (30 days, the default).",
			},
		},
		required: ["file", "purpose"],
	},
	BatchRequest: BatchRequestBody,
};
type RequestName = keyof typeof REQUESTS;
const FORMS: readonly RequestName[] = ["TranscriptionRequest", "FileUpload"];

const refOf = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const json = (name: keyof typeof ANSWERS) => ({ "application/json": { schema: refOf(name) } });

/** `x-event-schema` is the JSON schema of a stream event; OpenAPI 3.1 has no keyword for it. */
const events = (name: keyof typeof ANSWERS) => ({
	"text/event-stream": {
		schema: {
			type: "string",
			description:
				'Server-sent events: `data: <json>` and `: ` comments, ended by `data: [DONE]`. The last JSON event has the final usage. If the stream fails, it ends with `{"error": …}`, the usage and `[DONE]`.',
		},
		"x-event-schema": { anyOf: [refOf(name), refOf("Error")] },
	},
});
const text = (type: string) => ({ [type]: { schema: { type: "string" } } });

const REQUEST_ID = { description: "Request ID, for GET /v1/usage/{id}.", schema: { type: "string" } };
const FAILURES: Readonly<Record<number, string>> = {
	400: "`invalid_request`, `context_length_exceeded`, `unsupported_parameter`; `param` names the field.",
	401: "`missing_api_key`, `invalid_api_key`, `api_key_revoked`, `api_key_expired`.",
	402: "`top_up_required`; `insufficient_quota`, `project_cap_exceeded`, `key_cap_exceeded`, with the available, held and required amounts.",
	403: "`model_not_allowed`, `account_suspended`, `project_archived`, `sign_in_required`, `read_only_key`.",
	404: "`model_not_found`, `unsupported_mode`, `not_found`.",
	405: "`method_not_allowed`.",
	408: "`request_timeout`.",
	409: "`conflict`: the first request with this `Idempotency-Key` is still running, or its answer was not kept; or the resource is in another state.",
	412: "`precondition_failed`: the resource has changed since it was read.",
	413: "`payload_too_large`.",
	416: "`range_not_satisfiable`: the file has no bytes in the requested range.",
	415: "`unsupported_media_type`.",
	422: "`idempotency_mismatch`: this `Idempotency-Key` was used with another body.",
	429: "`rate_limit_exceeded`: a limit of the key, its project or its account, or too many wrong keys from this address. Retry after `retry-after` seconds.",
	500: "`internal_error`.",
	502: "`upstream_error`. With `x-should-retry: false` two servers of the model failed on this request twice.",
	503: "`service_unavailable`: no server is connected or accepts the service's requests, or the service is starting; `overloaded`: the servers are busy.",
	504: "`upstream_timeout`.",
};

export type DescribeFailures = (...statuses: readonly number[]) => Json;

/** Part of the OpenAPI document with the routes of another room. */
export interface DocumentPart {
	readonly paths: Readonly<Record<string, Json>>;
	readonly securitySchemes: Json;
	readonly schemas: Json;
}

function failures(...statuses: readonly number[]): Json {
	const headers = { "x-request-id": REQUEST_ID };
	return Object.fromEntries(
		statuses.map((status) => [String(status), { description: FAILURES[status], headers, content: json("Error") }]),
	);
}

const parameter = (place: "path" | "query" | "header", name: string, schema: Json, description?: string) => ({
	name,
	in: place,
	required: place === "path",
	schema,
	...(description === undefined ? {} : { description }),
});
const ID = parameter("path", "id", { type: "string" });
const KEY_SCHEMA = { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$" };
const IDEMPOTENCY_KEY = parameter(
	"header",
	"Idempotency-Key",
	KEY_SCHEMA,
	"A repeated request with the same key and body returns the first answer without a charge, for 24 hours. Kept are answers with status 200 of up to 4 MB. A repetition waits while the first request runs.",
);
/** Parameter of POST /v1/batches. Batches are never deleted, so their idempotency keys do not expire. */
const BATCH_IDEMPOTENCY_KEY = parameter(
	"header",
	"Idempotency-Key",
	KEY_SCHEMA,
	"A repeated request with the same key and body returns the existing batch in its current state, without a time limit. Another body returns 422.",
);
const PAGE = (idsOf: string, limit: Json) => [
	parameter("query", "limit", { type: "integer", minimum: 1, ...limit }),
	parameter("query", "after", { type: "string", description: `The \`last_id\` of the previous page of ${idsOf}.` }),
];
const FILE_QUERY = [
	parameter("query", "purpose", { type: "string" }),
	parameter("query", "order", { type: "string", enum: ["asc", "desc"] }),
	...PAGE("files", { description: "At most 1000; a larger limit is reduced." }),
];
const DAY = { type: "string", format: "date" };
const USAGE_QUERY = Object.entries<Json>({
	from: { ...DAY, description: "First day, in UTC. Default: 30 days up to `to`." },
	to: { ...DAY, description: "Last day, in UTC. Default: today. A range has at most 400 days." },
	group_by: {
		type: "string",
		description: "Comma-separated: `day`, `model`, `project`, `key`. Default: `day,model`. Empty: one total.",
	},
	model: { type: "string", maxLength: 200 },
	key: { type: "string", maxLength: 64, description: "ID of a key." },
	project: {
		type: "string",
		maxLength: 64,
		description: "ID of a project at the time of use; `none` for usage without a project.",
	},
	limit: { type: "integer", minimum: 1, maximum: 10_000, default: 1_000 },
	after: { type: "string", maxLength: 1_000, description: "`next` of the previous page." },
}).map(([name, schema]) => parameter("query", name, schema));

interface Operation {
	readonly summary: string;
	readonly content: Json;
	readonly failures: readonly number[];
	readonly parameters?: readonly Json[];
	readonly body?: RequestName;
	readonly headers?: Json;
	readonly description?: string;
	readonly partial?: boolean;
}

function operation({ summary, content, parameters, body, headers: own, description, ...rest }: Operation): Json {
	const headers = { "x-request-id": REQUEST_ID, ...own };
	const type = body !== undefined && FORMS.includes(body) ? "multipart/form-data" : "application/json";
	return {
		summary,
		...(parameters === undefined ? {} : { parameters }),
		...(body === undefined ? {} : { requestBody: { required: true, content: { [type]: { schema: refOf(body) } } } }),
		responses: {
			"200": { description: description ?? "The answer.", headers, content },
			...(rest.partial ? { "206": { description: "The requested range.", headers, content } } : {}),
			...failures(...rest.failures),
		},
	};
}

const INFERENCE_HEADERS = {
	"x-ignored-parameters": {
		description: "Optional fields that the deployment does not support and that were left out.",
		schema: { type: "string" },
	},
	"idempotent-replayed": { description: "`true` if the answer was replayed.", schema: { type: "string" } },
};
const inference = (summary: string, body: RequestName, content: Json): Json => ({
	post: operation({
		summary,
		body,
		content,
		parameters: [IDEMPOTENCY_KEY],
		headers: INFERENCE_HEADERS,
		failures: [400, 401, 402, 403, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504],
	}),
});
const lookUp = (summary: string, name: keyof typeof ANSWERS, ...parameters: readonly Json[]): Json => ({
	get: operation({ summary, content: json(name), parameters, failures: [401, 403, 404, 429, 503] }),
});
const stored = (own: readonly number[], rest: Omit<Operation, "failures">): Json =>
	operation({ ...rest, failures: [401, 403, ...own, 429, 503] });
const open = (summary: string, content: Json): Json => ({
	get: {
		summary: `${summary} No key required.`,
		security: [],
		responses: { "200": { description: "The answer.", content } },
	},
});

const PATHS: Readonly<Record<string, Json>> = {
	"/v1/chat/completions": inference("Create a chat completion.", "ChatRequest", {
		...json("ChatCompletion"),
		...events("ChatCompletionChunk"),
	}),
	"/v1/completions": inference("Create a text completion (models with mode `completions`).", "CompletionRequest", {
		...json("Completion"),
		...events("CompletionChunk"),
	}),
	"/v1/embeddings": inference("Create embeddings.", "EmbeddingRequest", json("EmbeddingList")),
	"/v1/audio/transcriptions": inference("Transcribe a recording.", "TranscriptionRequest", {
		"application/json": { schema: { anyOf: [refOf("Transcription"), refOf("VerboseTranscription")] } },
		...text("text/plain"),
		...events("TranscriptionEvent"),
	}),
	"/v1/images/generations": inference("Generate images.", "ImageRequest", json("Images")),
	"/v1/rerank": inference("Rank documents by their relevance to a query.", "RerankRequest", json("Ranking")),
	"/v1/models": lookUp("List the models with their prices.", "ModelList"),
	"/v1/models/{id}": lookUp("Retrieve a model. The ID may contain slashes, raw or encoded.", "Model", ID),
	"/v1/key": lookUp("Retrieve the limits and the spending of this API key.", "Key"),
	"/v1/credits": lookUp("Retrieve the account's credit: available, held and spent.", "Credits"),
	"/v1/usage": {
		get: operation({
			summary: "List the account's usage by day, model, project and key.",
			description: "The answer, as CSV with `Accept: text/csv`. `Link` has the next page.",
			parameters: USAGE_QUERY,
			headers: { link: { schema: { type: "string" } } },
			content: { ...json("UsageList"), ...text("text/csv") },
			failures: [400, 401, 403, 429, 503],
		}),
	},
	"/v1/usage/{id}": lookUp(
		"Retrieve the cost of a request by its `x-request-id` or the ID of its answer.",
		"RequestUsage",
		ID,
	),
	"/v1/files": {
		get: stored([400], {
			summary: "List the account's files, newest first.",
			content: json("FileList"),
			parameters: FILE_QUERY,
		}),
		post: stored([400, 402, 408, 409, 413, 415], {
			summary: "Upload a file for a batch. Files are encrypted and expire.",
			content: json("File"),
			body: "FileUpload",
		}),
	},
	"/v1/files/{id}": {
		get: stored([404], { summary: "Retrieve a file.", content: json("File"), parameters: [ID] }),
		delete: stored([404], { summary: "Delete a file.", content: json("FileDeleted"), parameters: [ID] }),
	},
	"/v1/files/{id}/content": {
		get: stored([404, 416], {
			summary: "Download a file, or a range of its bytes.",
			content: { "application/octet-stream": { schema: { type: "string", ...BYTES } } },
			parameters: [ID, parameter("header", "Range", { type: "string", description: "One range: `bytes=0-99`." })],
			partial: true,
		}),
	},
	"/v1/batches": {
		get: stored([400], {
			summary: "List the account's batches, newest first.",
			content: json("BatchList"),
			parameters: PAGE("batches", { maximum: 100 }),
		}),
		post: stored([400, 404, 408, 413, 415, 422], {
			summary: "Create a batch: the requests of a file, run within 24 hours at batch prices.",
			content: json("Batch"),
			parameters: [BATCH_IDEMPOTENCY_KEY],
			body: "BatchRequest",
		}),
	},
	"/v1/batches/{id}": {
		get: stored([404], { summary: "Retrieve a batch.", content: json("Batch"), parameters: [ID] }),
	},
	"/v1/batches/{id}/cancel": {
		post: stored([404, 409], {
			summary: "Cancel a batch. Requests in progress are completed; the others are not sent.",
			content: json("Batch"),
			parameters: [ID],
		}),
	},
	"/status": open("Current state and 90-day history of models and endpoints.", {
		...json("Status"),
		...text("text/html"),
	}),
	"/openapi.json": open("This document.", { "application/json": { schema: { type: "object" } } }),
};

export function openapiDocument(partOf?: (failures: DescribeFailures) => DocumentPart): Json {
	const part = partOf?.(failures);
	return {
		openapi: "3.1.0",
		info: {
			title: "Inference service",
			version: "1",
			description:
				"OpenAI-compatible inference of open models, authenticated by API keys and paid from prepaid credit. In requests, `null` is the same as an absent field. Optional fields are used if the model lists them in `supported_parameters`; others are left out and named in `x-ignored-parameters`.",
		},
		servers: [{ url: "/" }],
		security: [{ apiKey: [] }],
		paths: { ...PATHS, ...part?.paths },
		components: {
			securitySchemes: {
				apiKey: { type: "http", scheme: "bearer", description: "`Authorization: Bearer <API_KEY>`" },
				...part?.securitySchemes,
			},
			schemas: { ...REQUESTS, ...ANSWERS, ...part?.schemas },
		},
	};
}
