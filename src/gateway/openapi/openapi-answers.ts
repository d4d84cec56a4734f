/** Schemas of responses, by their names in the OpenAPI document. Tests check real responses against them. */
import { Type } from "@sinclair/typebox";
import { SERVICE_NAMES } from "../../status/status-answer.ts";
import { Basis, Cost, Count, exact, fieldsAs, oneOf, orNull, Seconds, Text, Usd } from "./openapi-text-answers.ts";

export { ChatCompletion, ChatCompletionChunk, Completion, CompletionChunk } from "./openapi-text-answers.ts";

const Float = Type.Number();

const charged = { cost: Cost, basis: Basis };

export const EmbeddingList = exact({
	object: Type.Literal("list"),
	data: Type.Array(
		exact({
			object: Type.Literal("embedding"),
			index: Count,
			embedding: Type.Union([
				Type.Array(Float),
				Type.String({ description: "Little-endian float32 in base64, with `encoding_format: base64`." }),
			]),
		}),
	),
	model: Text,
	usage: exact({ prompt_tokens: Count, total_tokens: Count, ...charged }),
});

const AudioUsage = Type.Union([
	exact({ type: Type.Literal("duration"), seconds: Count, ...charged }),
	exact({
		type: Type.Literal("tokens"),
		...fieldsAs(Count, "input_tokens", "output_tokens", "total_tokens"),
		input_token_details: exact(fieldsAs(Count, "text_tokens", "audio_tokens")),
		...charged,
	}),
]);
export const Transcription = exact({ text: Text, usage: AudioUsage });
export const VerboseTranscription = exact({
	task: Type.Literal("transcribe"),
	language: Text,
	duration: Float,
	text: Text,
	segments: Type.Array(
		exact({
			id: Count,
			text: Text,
			tokens: Type.Array(Count),
			...fieldsAs(Float, "seek", "start", "end", "temperature", "avg_logprob", "compression_ratio", "no_speech_prob"),
		}),
	),
	words: Type.Optional(Type.Array(exact({ word: Text, start: Float, end: Float }))),
	usage: AudioUsage,
});
export const TranscriptionEvent = Type.Union([
	exact({ type: Type.Literal("transcript.text.delta"), delta: Text }),
	exact({ type: Type.Literal("transcript.text.done"), text: Text, usage: AudioUsage }),
	exact({ type: Type.Literal("transcript.usage"), usage: AudioUsage }),
]);

export const Images = exact({
	created: Seconds,
	data: Type.Array(exact(fieldsAs(Type.Optional(Text), "b64_json", "url", "revised_prompt"))),
	usage: exact({
		...fieldsAs(Count, "input_tokens", "output_tokens", "total_tokens", "images"),
		input_tokens_details: exact(fieldsAs(Count, "text_tokens", "image_tokens")),
		...charged,
	}),
});

export const Ranking = exact({
	id: Text,
	object: Type.Literal("rerank"),
	model: Text,
	results: Type.Array(exact({ index: Count, relevance_score: Float, document: Type.Optional(exact({ text: Text })) })),
	usage: exact({ prompt_tokens: Count, total_tokens: Count, search_units: Count, ...charged }),
	meta: exact({ billed_units: exact({ search_units: Count }) }),
});

const Rate = Type.String({ pattern: "^\\d+(\\.\\d{1,12})?$", description: "US dollars per unit." });
const Pricing = exact(
	fieldsAs(Rate, "prompt", "completion", "input_cache_read", "request", "image", "audio_second", "search"),
);
export const Model = exact({
	...fieldsAs(Text, "id", "owned_by", "name"),
	object: Type.Literal("model"),
	created: Seconds,
	kind: oneOf("chat", "embedding", "transcription", "image", "rerank"),
	...fieldsAs(Count, "context_length", "max_output_tokens"),
	supported_parameters: Type.Array(Text),
	modes: Type.Array(oneOf("chat", "completions", "batch")),
	architecture: exact({ modality: Text, ...fieldsAs(Type.Array(Text), "input_modalities", "output_modalities") }),
	pricing: Pricing,
	batch_pricing: Type.Optional(Pricing),
	/** Null for a route, because each of its models has its own rate card. */
	rate_card: orNull(Text),
	expiration_date: orNull(
		Type.String({ format: "date", description: "First day, in UTC, on which the model returns 404." }),
	),
	status: oneOf("connected", "unavailable"),
	route: Type.Optional(exact({ models: Type.Array(Text), by: oneOf("listed", "price", "speed") })),
});
export const ModelList = exact({ object: Type.Literal("list"), data: Type.Array(Model) });

const capped = {
	...fieldsAs(orNull(Float), "limit", "limit_remaining"),
	limit_reset: orNull(oneOf("daily", "weekly", "monthly")),
	...fieldsAs(orNull(Usd), "cap_usd", "remaining_usd"),
	cap_period: oneOf("lifetime", "day", "week", "month"),
	cap_spent_usd: Usd,
	cap_renews_at: orNull(Type.String({ format: "date-time" })),
	models: orNull(Type.Array(Text)),
	limits: exact(fieldsAs(orNull(Count), "requests_per_minute", "concurrency", "tokens_per_minute")),
};
export const Key = exact({
	data: exact({
		label: Text,
		...capped,
		usage: Float,
		is_free_tier: Type.Literal(false),
		...fieldsAs(Usd, "spent_usd", "held_usd"),
		expires_at: orNull(Type.String({ format: "date-time" })),
		project: orNull(exact({ ...fieldsAs(Text, "id", "name"), ...capped })),
	}),
});
export const Credits = exact({
	data: exact({
		...fieldsAs(Float, "total_credits", "total_usage"),
		...fieldsAs(Usd, "balance_usd", "available_usd", "held_usd", "spent_usd"),
	}),
});
export const RequestUsage = exact({
	id: Text,
	object: Type.Literal("usage"),
	created: Seconds,
	model: Text,
	status: oneOf("running", "settled"),
	endpoint: orNull(oneOf("chat", "completions", "embeddings", "transcription", "image", "rerank")),
	streamed: orNull(Type.Boolean()),
	basis: orNull(oneOf("exact", "estimated", "recovered")),
	ending: orNull(
		oneOf("finished", "upstream_failed", "upstream_died", "upstream_silent", "client_left", "shutdown", "crashed"),
	),
	http_status: orNull(Type.Integer()),
	usage: orNull(
		exact({
			...fieldsAs(Count, "prompt_tokens", "completion_tokens", "total_tokens"),
			prompt_tokens_details: exact({ cached_tokens: Count }),
			completion_tokens_details: exact({ reasoning_tokens: Count }),
			units: Type.Integer({ minimum: 0, description: "Audio seconds, images or searches." }),
		}),
	),
	cost_usd: orNull(Usd),
	reserved_usd: Usd,
	...fieldsAs(orNull(Text), "rate_card", "batch_id"),
});

export const UsageList = exact({
	object: Type.Literal("list"),
	data: Type.Array(
		exact({
			object: Type.Literal("usage.sum"),
			day: Type.Optional(Type.String({ description: "Date in UTC: `2027-01-31`. Absent unless grouped by day." })),
			...fieldsAs(Type.Optional(Text), "model", "key_id"),
			...fieldsAs(Type.Optional(orNull(Text)), "project_id", "project_name", "key_name"),
			...fieldsAs(Count, "requests", "prompt_tokens", "cached_tokens", "completion_tokens"),
			...fieldsAs(Count, "reasoning_tokens", "total_tokens"),
			cost_usd: Usd,
		}),
	),
	from: Text,
	to: Text,
	as_of: orNull(
		Type.String({ description: "The sums contain all usage settled before this time, and most of the later usage." }),
	),
	has_more: Type.Boolean(),
	next: orNull(Text),
});

const listOf = <T extends ReturnType<typeof exact>>(data: T) =>
	exact({
		object: Type.Literal("list"),
		data: Type.Array(data),
		...fieldsAs(orNull(Text), "first_id", "last_id"),
		has_more: Type.Boolean(),
	});

export const Batch = exact({
	id: Text,
	object: Type.Literal("batch"),
	endpoint: Text,
	model: orNull(Text),
	errors: orNull(
		exact({
			object: Type.Literal("list"),
			data: Type.Array(exact({ ...fieldsAs(Text, "code", "message"), param: orNull(Text), line: orNull(Count) })),
		}),
	),
	...fieldsAs(Text, "input_file_id", "completion_window"),
	status: oneOf("validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"),
	...fieldsAs(orNull(Text), "output_file_id", "error_file_id"),
	...fieldsAs(Seconds, "created_at", "expires_at"),
	...fieldsAs(orNull(Seconds), "in_progress_at", "finalizing_at", "completed_at", "failed_at", "expired_at"),
	...fieldsAs(orNull(Seconds), "cancelling_at", "cancelled_at"),
	request_counts: exact(fieldsAs(Count, "total", "completed", "failed")),
	usage: exact({
		...fieldsAs(Count, "input_tokens", "output_tokens", "total_tokens"),
		input_tokens_details: exact({ cached_tokens: Count }),
		output_tokens_details: exact({ reasoning_tokens: Count }),
	}),
	metadata: orNull(Type.Record(Text, Text)),
	paused: orNull(exact({ code: Text, message: Text, since: Seconds })),
	cost_usd: Usd,
});

export const BatchList = listOf(Batch);

const FileObject = exact({
	id: Text,
	object: Type.Literal("file"),
	bytes: Count,
	...fieldsAs(Seconds, "created_at", "expires_at"),
	filename: Text,
	purpose: oneOf("batch", "batch_output"),
	status: Type.Literal("processed"),
});
export const FileList = listOf(FileObject);
export const FileDeleted = exact({ id: Text, object: Type.Literal("file"), deleted: Type.Literal(true) });

const Connected = oneOf("connected", "unavailable");
const Day = Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\d$", description: "A day in UTC." });
const track = {
	uptime_percent: orNull(
		Type.Number({
			minimum: 0,
			maximum: 100,
			description: "Share of observed minutes without an outage, rounded down; null if there are none.",
		}),
	),
	days: Type.Array(exact({ date: Day, operational_minutes: Count, degraded_minutes: Count, down_minutes: Count }), {
		description: "Oldest first. Unobserved minutes are not counted; days without observed minutes are omitted.",
	}),
};
const History = exact({
	as_of: orNull(Type.String({ format: "date-time", description: "Time of the last update; null before the first." })),
	from: Day,
	to: Day,
	service: exact(track),
	services: Type.Object(Object.fromEntries(SERVICE_NAMES.map((name) => [name, Type.Optional(exact(track))])), {
		additionalProperties: false,
		description: "Endpoints with a model.",
	}),
	models: Type.Array(exact({ id: Text, ...track })),
});
export const Status = exact({
	object: Type.Literal("status"),
	status: oneOf("operational", "degraded", "unavailable"),
	version: Text,
	checked_at: Type.String({ format: "date-time" }),
	services: exact(Object.fromEntries(SERVICE_NAMES.map((name) => [name, Connected]))),
	models: Type.Array(exact({ id: Text, name: Text, kind: Text, status: Connected })),
	history: History,
});

const ErrorAnswer = exact({
	error: exact({
		...fieldsAs(Text, "message", "type", "code"),
		param: orNull(Text),
		...fieldsAs(Type.Optional(Usd), "available_usd", "held_usd", "required_usd"),
		affordable_max_tokens: Type.Optional(Count),
	}),
});

export { ErrorAnswer as Error, FileObject as File };
