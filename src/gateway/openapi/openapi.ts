/** The OpenAPI document, generated from the schemas that check requests. */
import { BatchRequestBody } from "../batches/batch-request.ts";
import { ChatRequestBody } from "../chat/chat-request.ts";
import { CompletionRequestBody } from "../completions/completions.ts";
import { EmbeddingRequestBody } from "../embeddings/embeddings.ts";
import { ImageRequestBody } from "../images/images.ts";
import { RerankRequestBody } from "../rerank/rerank.ts";
import { TranscriptionRequestForm } from "../transcriptions/transcriptions-request.ts";
import { ANSWERS } from "./openapi-answers.ts";
import { FileUpload } from "./openapi-batch-answers.ts";
import { USAGE_QUERY } from "./openapi-usage.ts";

type Json = Readonly<Record<string, unknown>>;

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
					"The recording: FLAC, MP3, MP4 or M4A (AAC, ALAC), Ogg (Opus, Vorbis), WAV or WebM, a day at most.",
				contentMediaType: "application/octet-stream",
			},
		},
		required: ["model", "file"],
	},
	ImageRequest: ImageRequestBody,
	RerankRequest: RerankRequestBody,
	FileUpload,
	BatchRequest: BatchRequestBody,
};

const refOf = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const json = (name: keyof typeof ANSWERS) => ({ "application/json": { schema: refOf(name) } });

/** `x-event-schema` describes the JSON of one event; OpenAPI 3.1 has no keyword for it. */
const events = (name: keyof typeof ANSWERS) => ({
	"text/event-stream": {
		schema: {
			type: "string",
			description:
				'`data: <json>` events and `: ` comments, ended by `data: [DONE]`. The last JSON event before it carries the authoritative usage. A failure in the middle is an event `{"error": …}`, then usage, then `[DONE]`.',
		},
		"x-event-schema": { anyOf: [refOf(name), refOf("Error")] },
	},
});
const text = (type: string) => ({ [type]: { schema: { type: "string" } } });

const REQUEST_ID = { description: "Names the request, for GET /v1/usage/{id}.", schema: { type: "string" } };
const FAILURES: Readonly<Record<number, string>> = {
	400: "`invalid_request`, `context_length_exceeded`, `unsupported_parameter`; `param` names the field.",
	401: "`missing_api_key`, `invalid_api_key`, `api_key_revoked`, `api_key_expired`.",
	402: "`top_up_required`, `insufficient_quota`, `project_cap_exceeded`, `key_cap_exceeded`, but for the first with what is available, held and required.",
	403: "`model_not_allowed`, `account_suspended`, `project_archived`, `sign_in_required`, `read_only_key`.",
	404: "`model_not_found`, `unsupported_mode`, `not_found`.",
	405: "`method_not_allowed`.",
	408: "`request_timeout`.",
	409: "`conflict`: the first request with this `Idempotency-Key` is still running, or was charged and its answer is lost or not kept; or the state of what is asked for forbids it.",
	412: "`precondition_failed`: it was changed since it was read.",
	413: "`payload_too_large`.",
	416: "`range_not_satisfiable`: none of the bytes that were asked for is there.",
	415: "`unsupported_media_type`.",
	422: "`idempotency_mismatch`: this `Idempotency-Key` was used for another request; `unprocessable_request`: two servers of the model failed on it alike.",
	429: "`rate_limit_exceeded`: a limit of the key, its project or its account, or too many wrong keys from this address; `retry-after` says when to come back.",
	500: "`internal_error`.",
	502: "`upstream_error`.",
	503: "`service_unavailable`: no connected deployment, or not ready; `overloaded`: its servers are busy.",
	504: "`upstream_timeout`.",
};

/** Responses of these statuses. */
export type Failures = (...statuses: readonly number[]) => Json;

/** A part of the document that another room serves. */
export interface DocumentPart {
	readonly paths: Readonly<Record<string, Json>>;
	readonly securitySchemes: Json;
	readonly schemas: Json;
}

function failures(...statuses: readonly number[]): Json {
	return Object.fromEntries(
		statuses.map((status) => [
			String(status),
			{ description: FAILURES[status], headers: { "x-request-id": REQUEST_ID }, content: json("Error") },
		]),
	);
}

const IDEMPOTENCY_KEY = {
	name: "Idempotency-Key",
	in: "header",
	required: false,
	schema: { type: "string", pattern: "^[\\x21-\\x7e]{1,255}$" },
	description:
		"The same key with the same body replays the first answer at no charge, for 24 hours: whole answers with status 200, of up to 4 MB. A repetition waits for the first request while that runs.",
};

/** Batches and their idempotency keys are never removed. */
const BATCH_IDEMPOTENCY_KEY = {
	...IDEMPOTENCY_KEY,
	description:
		"The same key with the same body answers with the batch that was made, as it is by now, however long ago that was; with another body it is 422.",
};

interface Inference {
	readonly summary: string;
	readonly request: keyof typeof REQUESTS;
	readonly form?: boolean;
	readonly content: Json;
}

function inference({ summary, request, form = false, content }: Inference): Json {
	const headers = {
		"x-request-id": REQUEST_ID,
		"x-ignored-parameters": {
			description: "Optional fields that the deployment does not honour and that were left out.",
			schema: { type: "string" },
		},
		"idempotent-replayed": { description: "`true` on a replayed answer.", schema: { type: "string" } },
	};
	return {
		post: {
			summary,
			parameters: [IDEMPOTENCY_KEY],
			requestBody: {
				required: true,
				content: { [form ? "multipart/form-data" : "application/json"]: { schema: refOf(request) } },
			},
			responses: {
				"200": { description: "The answer.", headers, content },
				...failures(400, 401, 402, 403, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504),
			},
		},
	};
}

function lookUp(summary: string, name: keyof typeof ANSWERS, parameter?: string): Json {
	const parameters = parameter
		? { parameters: [{ name: parameter, in: "path", required: true, schema: { type: "string" } }] }
		: {};
	const content = json(name);
	return {
		get: {
			summary,
			...parameters,
			responses: {
				"200": { description: "The answer.", headers: { "x-request-id": REQUEST_ID }, content },
				...failures(401, 403, 404, 429, 503),
			},
		},
	};
}

const parameter = (place: "path" | "query" | "header", name: string, schema: Json) => ({
	name,
	in: place,
	required: place === "path",
	schema,
});
const ID = parameter("path", "id", { type: "string" });
const FILE_QUERY = [
	parameter("query", "purpose", { type: "string" }),
	parameter("query", "limit", { type: "integer", minimum: 1, description: "At most 1000 are given at once." }),
	parameter("query", "order", { type: "string", enum: ["asc", "desc"] }),
	parameter("query", "after", { type: "string", description: "The `last_id` of the page before." }),
];
const PAGE = [
	parameter("query", "limit", { type: "integer", minimum: 1, maximum: 100 }),
	parameter("query", "after", { type: "string", description: "The `last_id` of the page before." }),
];
const FORM_FAILURES = [400, 402, 408, 409, 413, 415] as const;

/** Of `/v1/files` and `/v1/batches`, where 503 also means that no deployment takes batches. */
function aboutBatches(summary: string, content: Json, parameters: readonly Json[], own: readonly number[]): Json {
	const answer = { description: "The answer.", headers: { "x-request-id": REQUEST_ID }, content };
	return { summary, parameters, responses: { "200": answer, ...failures(401, 403, ...own, 429, 503) } };
}

const BYTES = {
	"application/octet-stream": { schema: { type: "string", contentMediaType: "application/octet-stream" } },
};
const RANGE = parameter("header", "Range", { type: "string", description: "One range of bytes: `bytes=0-99`." });
const FILE_BYTES = aboutBatches("The bytes of a file, or a range of them.", BYTES, [ID, RANGE], [404, 416]);
const FILE_CONTENT: Json = {
	...FILE_BYTES,
	responses: {
		...(FILE_BYTES.responses as Json),
		"206": { description: "The range.", headers: { "x-request-id": REQUEST_ID }, content: BYTES },
	},
};

const PATHS: Readonly<Record<string, Json>> = {
	"/v1/chat/completions": inference({
		summary: "Generate chat completions.",
		request: "ChatRequest",
		content: { ...json("ChatCompletion"), ...events("ChatCompletionChunk") },
	}),
	"/v1/completions": inference({
		summary: "Generate text completions, where the deployment lists the mode.",
		request: "CompletionRequest",
		content: { ...json("Completion"), ...events("CompletionChunk") },
	}),
	"/v1/embeddings": inference({
		summary: "Embed texts.",
		request: "EmbeddingRequest",
		content: json("EmbeddingList"),
	}),
	"/v1/audio/transcriptions": inference({
		summary: "Transcribe a recording.",
		request: "TranscriptionRequest",
		form: true,
		content: {
			"application/json": { schema: { anyOf: [refOf("Transcription"), refOf("VerboseTranscription")] } },
			...text("text/plain"),
			...events("TranscriptionEvent"),
		},
	}),
	"/v1/images/generations": inference({
		summary: "Generate images.",
		request: "ImageRequest",
		content: json("Images"),
	}),
	"/v1/rerank": inference({
		summary: "Order documents by their relevance to a query.",
		request: "RerankRequest",
		content: json("Ranking"),
	}),
	"/v1/models": lookUp("List the deployments and their rates.", "ModelList"),
	"/v1/models/{id}": lookUp("One deployment; the ID may hold slashes, raw or encoded.", "Model", "id"),
	"/v1/key": lookUp("What this key may spend and has spent.", "Key"),
	"/v1/credits": lookUp("The account's credit: available, held and spent.", "Credits"),
	"/v1/usage": {
		get: {
			summary: "What the account used, summed by the day, model, project and key: from sums, however many requests.",
			parameters: USAGE_QUERY.map(([name, schema]) => parameter("query", name, schema)),
			responses: {
				"200": {
					description: "The answer; as CSV for `Accept: text/csv`. `Link` names the next page.",
					headers: { "x-request-id": REQUEST_ID, link: { schema: { type: "string" } } },
					content: { ...json("UsageList"), ...text("text/csv") },
				},
				...failures(400, 401, 403, 429, 503),
			},
		},
	},
	"/v1/usage/{id}": lookUp("What one request cost, by its `x-request-id` or its answer's ID.", "RequestUsage", "id"),
	"/v1/files": {
		get: aboutBatches("The account's files, newest first.", json("FileList"), FILE_QUERY, [400]),
		post: {
			...aboutBatches(
				"Upload a file for a batch. It is kept encrypted, and ends by itself.",
				json("File"),
				[],
				FORM_FAILURES,
			),
			requestBody: { required: true, content: { "multipart/form-data": { schema: refOf("FileUpload") } } },
		},
	},
	"/v1/files/{id}": {
		get: aboutBatches("One file of the account.", json("File"), [ID], [404]),
		delete: aboutBatches("Delete a file and its bytes.", json("FileDeleted"), [ID], [404]),
	},
	"/v1/files/{id}/content": { get: FILE_CONTENT },
	"/v1/batches": {
		get: aboutBatches("The account's batches, newest first.", json("BatchList"), PAGE, [400]),
		post: {
			...aboutBatches(
				"Run a file of requests within a day, behind interactive traffic and at batch rates.",
				json("Batch"),
				[BATCH_IDEMPOTENCY_KEY],
				[400, 404, 408, 413, 415, 422],
			),
			requestBody: { required: true, content: { "application/json": { schema: refOf("BatchRequest") } } },
		},
	},
	"/v1/batches/{id}": { get: aboutBatches("One batch of the account.", json("Batch"), [ID], [404]) },
	"/v1/batches/{id}/cancel": {
		post: aboutBatches(
			"End a batch: what is under way settles, the rest is not sent.",
			json("Batch"),
			[ID],
			[404, 409],
		),
	},
	"/status": {
		get: {
			summary: "Whether each model and each service is connected, and how they did in the last 90 days. Needs no key.",
			security: [],
			responses: { "200": { description: "The answer.", content: { ...json("Status"), ...text("text/html") } } },
		},
	},
	"/openapi.json": {
		get: {
			summary: "This document. Needs no key.",
			security: [],
			responses: {
				"200": { description: "The document.", content: { "application/json": { schema: { type: "object" } } } },
			},
		},
	},
};

/** OpenAPI 3.1, whose schemas are JSON Schema 2020-12, in which null is a type. */
export function openapiDocument(partOf?: (failures: Failures) => DocumentPart): Json {
	const part = partOf?.(failures);
	return {
		openapi: "3.1.0",
		info: {
			title: "Inference service",
			version: "1",
			description:
				"Hosted inference of open models over the chat-completion interface, authenticated by API keys and funded by account credit. `null` means absent in every request. Optional fields are honoured where the deployment lists them in `supported_parameters`; others are left out and named in `x-ignored-parameters`.",
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
