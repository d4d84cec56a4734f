/** The answers of the interface as schemas, for its description. The tests hold every real answer against them. */
import { Type } from "@sinclair/typebox";
import { SERVICE_NAMES } from "../../status/status-answer.ts";
import { Batch, BatchList } from "./openapi-batch-answers.ts";
import { File, FileDeleted, FileList } from "./openapi-file-answers.ts";
import { ChatCompletion, ChatCompletionChunk, Completion, CompletionChunk } from "./openapi-text-answers.ts";
import { Basis, Cost, Count, exact, oneOf, orNull, Seconds, Usd } from "./openapi-words.ts";

const EmbeddingList = exact({
	object: Type.Literal("list"),
	data: Type.Array(
		exact({
			object: Type.Literal("embedding"),
			index: Count,
			embedding: Type.Union([
				Type.Array(Type.Number()),
				Type.String({ description: "Little-endian float32 in base64, with `encoding_format: base64`." }),
			]),
		}),
	),
	model: Type.String(),
	usage: exact({ prompt_tokens: Count, total_tokens: Count, cost: Cost, basis: Basis }),
});

const AudioUsage = Type.Union([
	exact({ type: Type.Literal("duration"), seconds: Count, cost: Cost, basis: Basis }),
	exact({
		type: Type.Literal("tokens"),
		input_tokens: Count,
		output_tokens: Count,
		total_tokens: Count,
		input_token_details: exact({ text_tokens: Count, audio_tokens: Count }),
		cost: Cost,
		basis: Basis,
	}),
]);
const Transcription = exact({ text: Type.String(), usage: AudioUsage });
const VerboseTranscription = exact({
	task: Type.Literal("transcribe"),
	language: Type.String(),
	duration: Type.Number(),
	text: Type.String(),
	segments: Type.Array(
		exact({
			id: Count,
			seek: Type.Number(),
			start: Type.Number(),
			end: Type.Number(),
			text: Type.String(),
			tokens: Type.Array(Count),
			temperature: Type.Number(),
			avg_logprob: Type.Number(),
			compression_ratio: Type.Number(),
			no_speech_prob: Type.Number(),
		}),
	),
	words: Type.Optional(Type.Array(exact({ word: Type.String(), start: Type.Number(), end: Type.Number() }))),
	usage: AudioUsage,
});
const TranscriptionEvent = Type.Union([
	exact({ type: Type.Literal("transcript.text.delta"), delta: Type.String() }),
	exact({ type: Type.Literal("transcript.text.done"), text: Type.String(), usage: AudioUsage }),
	exact({ type: Type.Literal("transcript.usage"), usage: AudioUsage }),
]);

const Images = exact({
	created: Seconds,
	data: Type.Array(
		exact({
			b64_json: Type.Optional(Type.String()),
			url: Type.Optional(Type.String()),
			revised_prompt: Type.Optional(Type.String()),
		}),
	),
	usage: exact({
		input_tokens: Count,
		output_tokens: Count,
		total_tokens: Count,
		input_tokens_details: exact({ text_tokens: Count, image_tokens: Count }),
		images: Count,
		cost: Cost,
		basis: Basis,
	}),
});

const Ranking = exact({
	id: Type.String(),
	object: Type.Literal("rerank"),
	model: Type.String(),
	results: Type.Array(
		exact({
			index: Count,
			relevance_score: Type.Number(),
			document: Type.Optional(exact({ text: Type.String() })),
		}),
	),
	usage: exact({ prompt_tokens: Count, total_tokens: Count, search_units: Count, cost: Cost, basis: Basis }),
	meta: exact({ billed_units: exact({ search_units: Count }) }),
});

const Rate = Type.String({ pattern: "^\\d+(\\.\\d{1,12})?$", description: "US dollars a unit." });
const Pricing = exact({
	prompt: Rate,
	completion: Rate,
	input_cache_read: Rate,
	request: Rate,
	image: Rate,
	audio_second: Rate,
	search: Rate,
});
const Model = exact({
	id: Type.String(),
	object: Type.Literal("model"),
	created: Seconds,
	owned_by: Type.String(),
	name: Type.String(),
	kind: oneOf("chat", "embedding", "transcription", "image", "rerank"),
	context_length: Count,
	max_output_tokens: Count,
	supported_parameters: Type.Array(Type.String()),
	modes: Type.Array(oneOf("chat", "completions", "batch")),
	architecture: exact({
		modality: Type.String(),
		input_modalities: Type.Array(Type.String()),
		output_modalities: Type.Array(Type.String()),
	}),
	pricing: Pricing,
	batch_pricing: Type.Optional(Pricing),
	/** Null for a route, which has those of its models. */
	rate_card: orNull(Type.String()),
	expiration_date: orNull(
		Type.String({ format: "date", description: "The first day, in UTC, on which it is not served: 404 from then on." }),
	),
	status: oneOf("connected", "unavailable"),
	route: Type.Optional(exact({ models: Type.Array(Type.String()), by: oneOf("listed", "price", "speed") })),
});
const ModelList = exact({ object: Type.Literal("list"), data: Type.Array(Model) });

const Key = exact({
	data: exact({
		label: Type.String(),
		limit: orNull(Type.Number()),
		limit_remaining: orNull(Type.Number()),
		limit_reset: orNull(oneOf("daily", "weekly", "monthly")),
		usage: Type.Number(),
		is_free_tier: Type.Literal(false),
		cap_usd: orNull(Usd),
		cap_period: oneOf("lifetime", "day", "week", "month"),
		cap_spent_usd: Usd,
		cap_renews_at: orNull(Type.String({ format: "date-time" })),
		remaining_usd: orNull(Usd),
		spent_usd: Usd,
		held_usd: Usd,
		models: orNull(Type.Array(Type.String())),
		expires_at: orNull(Type.String({ format: "date-time" })),
		limits: exact({ requests_per_minute: orNull(Count), concurrency: orNull(Count) }),
		project: orNull(
			exact({
				id: Type.String(),
				name: Type.String(),
				limit: orNull(Type.Number()),
				limit_remaining: orNull(Type.Number()),
				limit_reset: orNull(oneOf("daily", "weekly", "monthly")),
				cap_usd: orNull(Usd),
				cap_period: oneOf("lifetime", "day", "week", "month"),
				cap_spent_usd: Usd,
				cap_renews_at: orNull(Type.String({ format: "date-time" })),
				remaining_usd: orNull(Usd),
				models: orNull(Type.Array(Type.String())),
				limits: exact({ requests_per_minute: orNull(Count), concurrency: orNull(Count) }),
			}),
		),
	}),
});
const Credits = exact({
	data: exact({
		total_credits: Type.Number(),
		total_usage: Type.Number(),
		balance_usd: Usd,
		available_usd: Usd,
		held_usd: Usd,
		spent_usd: Usd,
	}),
});
const RequestUsage = exact({
	id: Type.String(),
	object: Type.Literal("usage"),
	created: Seconds,
	model: Type.String(),
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
			prompt_tokens: Count,
			completion_tokens: Count,
			total_tokens: Count,
			prompt_tokens_details: exact({ cached_tokens: Count }),
			completion_tokens_details: exact({ reasoning_tokens: Count }),
			units: Type.Integer({ minimum: 0, description: "Audio seconds, images or searches." }),
		}),
	),
	cost_usd: orNull(Usd),
	reserved_usd: Usd,
	rate_card: orNull(Type.String()),
	batch_id: orNull(Type.String()),
});

const UsageList = exact({
	object: Type.Literal("list"),
	data: Type.Array(
		exact({
			object: Type.Literal("usage.sum"),
			day: Type.Optional(Type.String({ description: "In UTC: `2027-01-31`. What is not asked for is left out." })),
			model: Type.Optional(Type.String()),
			project_id: Type.Optional(orNull(Type.String())),
			project_name: Type.Optional(orNull(Type.String())),
			key_id: Type.Optional(Type.String()),
			key_name: Type.Optional(orNull(Type.String())),
			requests: Count,
			prompt_tokens: Count,
			cached_tokens: Count,
			completion_tokens: Count,
			reasoning_tokens: Count,
			total_tokens: Count,
			cost_usd: Usd,
		}),
	),
	from: Type.String(),
	to: Type.String(),
	as_of: orNull(
		Type.String({ description: "What was settled until then is in the sums, and most of what came after it." }),
	),
	has_more: Type.Boolean(),
	next: orNull(Type.String()),
});

const Connected = oneOf("connected", "unavailable");
const Day = Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\d$", description: "A day in UTC." });
const track = {
	uptime_percent: orNull(
		Type.Number({
			minimum: 0,
			maximum: 100,
			description: "Share of the observed minutes in which it was not down, rounded down; null if there are none.",
		}),
	),
	days: Type.Array(exact({ date: Day, operational_minutes: Count, degraded_minutes: Count, down_minutes: Count }), {
		description: "Oldest first. Minutes that nobody observed are in none of the counts; days without any are left out.",
	}),
};
const History = exact({
	as_of: orNull(
		Type.String({ format: "date-time", description: "When it was last read; null before the first time." }),
	),
	from: Day,
	to: Day,
	service: exact(track),
	services: Type.Object(Object.fromEntries(SERVICE_NAMES.map((name) => [name, Type.Optional(exact(track))])), {
		additionalProperties: false,
		description: "Those that have a model.",
	}),
	models: Type.Array(exact({ id: Type.String(), ...track })),
});
const Status = exact({
	object: Type.Literal("status"),
	status: oneOf("operational", "degraded", "unavailable"),
	version: Type.String(),
	checked_at: Type.String({ format: "date-time" }),
	services: exact(Object.fromEntries(SERVICE_NAMES.map((name) => [name, Connected]))),
	models: Type.Array(exact({ id: Type.String(), name: Type.String(), kind: Type.String(), status: Connected })),
	history: History,
});

const ErrorAnswer = exact({
	error: Type.Object(
		{
			message: Type.String(),
			type: Type.String(),
			param: orNull(Type.String()),
			code: Type.String(),
			available_usd: Type.Optional(Usd),
			held_usd: Type.Optional(Usd),
			required_usd: Type.Optional(Usd),
			affordable_max_tokens: Type.Optional(Count),
		},
		{ additionalProperties: false },
	),
});

/** By the names that the description gives them. */
export const ANSWERS = {
	ChatCompletion,
	ChatCompletionChunk,
	Completion,
	CompletionChunk,
	EmbeddingList,
	Transcription,
	VerboseTranscription,
	TranscriptionEvent,
	Images,
	Ranking,
	Model,
	ModelList,
	Key,
	Credits,
	RequestUsage,
	UsageList,
	Batch,
	BatchList,
	File,
	FileList,
	FileDeleted,
	Status,
	Error: ErrorAnswer,
} as const;
