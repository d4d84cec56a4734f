import { asCount, asObject, asObjects, asText, filledText, type JsonObject } from "../wire-value.ts";
import type { AnswerFields } from "./chat-answer.ts";

/** Fields of chat answers that clients get. `test/wire/withheld-fields.ts` gives reasons for withheld fields. */

/** Copies a value member by member; undefined if the value is dropped. */
type Read = (value: unknown) => unknown;

/** Fields that other functions copy, so they have no reader here. */
const own = (names: string): Record<string, null> => Object.fromEntries(names.split(" ").map((name) => [name, null]));

export const FORWARDED_FIELDS: Readonly<
	Record<"answer" | "choice" | "message" | "toolCall", Record<string, Read | null>>
> = {
	answer: {
		...own("choices usage"),
		service_tier: serviceTier,
		// Shows customers why the same seed gave another answer. Values with versions, file names or hosts are dropped.
		system_fingerprint: fingerprint,
		citations,
		search_results: searchResults,
	},
	choice: own("index message delta logprobs finish_reason"),
	message: {
		// `reasoning` is renamed to `reasoning_content`, which most clients read.
		...own("role content refusal tool_calls function_call reasoning_content reasoning"),
		// Clients send these three fields back. Some reasoning models refuse tool calls without their signatures.
		reasoning_details: reasoningDetails,
		thinking_blocks: thinkingBlocks,
		extra_content: extraContent,
		annotations: copyAnnotations,
		audio,
		images,
	},
	toolCall: { ...own("index id type function custom"), extra_content: extraContent, thought_signature: filledText },
};

function readersOf(
	fields: Record<string, Read | null>,
	names = Object.keys(fields),
): readonly (readonly [string, Read])[] {
	return names.flatMap((name) => (fields[name] ? [[name, fields[name]] as const] : []));
}

/** Lists of sources, which are sent once, at the end of a stream. */
const SOURCES = ["citations", "search_results"];
const ABOUT_READERS = readersOf(FORWARDED_FIELDS.answer, ["service_tier", "system_fingerprint"]);
const SOURCE_READERS = readersOf(FORWARDED_FIELDS.answer, SOURCES);
export const MESSAGE_READERS = readersOf(FORWARDED_FIELDS.message);
export const TOOL_CALL_READERS = readersOf(FORWARDED_FIELDS.toolCall);

/** Fields of a stream's events so far, other than the choices. */
interface OtherFields {
	/** Undefined if there were none. The same object until a field changes, so that its JSON can be reused. */
	about: AnswerFields | undefined;
	sources: AnswerFields | undefined;
}

export const newOtherFields = (): OtherFields => ({ about: undefined, sources: undefined });

/** Reads the fields of an event or of a complete answer. Returns true if `sources` changed. */
export function updateOtherFields(soFar: OtherFields, event: JsonObject): boolean {
	for (const [name, read] of ABOUT_READERS) {
		const raw = event[name];
		if (raw === undefined || raw === null || raw === soFar.about?.[name]) continue;
		const value = read(raw);
		if (value !== undefined) soFar.about = { ...soFar.about, [name]: value };
	}
	let changed = false;
	for (const [name, read] of SOURCE_READERS) {
		const value = event[name] === undefined ? undefined : read(event[name]);
		if (value === undefined) continue;
		soFar.sources = { ...soFar.sources, [name]: value };
		changed = true;
	}
	return changed;
}

const NOTHING_SAID = {};

export function readOtherFields(body: JsonObject): { about?: AnswerFields; sources?: AnswerFields } {
	const soFar = newOtherFields();
	updateOtherFields(soFar, body);
	const { about, sources } = soFar;
	if (about === undefined && sources === undefined) return NOTHING_SAID;
	return { ...(about === undefined ? {} : { about }), ...(sources === undefined ? {} : { sources }) };
}

/** Copies structured values of an answer member by member. Each function returns undefined if nothing remains. */

/** Limits per answer; items above them are dropped. */
const ITEMS_MAX = 256;
const PARTS_MAX = 4_096;
const SHORT_CHARS_MAX = 256;
const ADDRESS_CHARS_MAX = 8_192;

function serviceTier(value: unknown): string | undefined {
	return typeof value === "string" && /^[a-z_]{1,32}$/.test(value) ? value : undefined;
}

function fingerprint(value: unknown): string | undefined {
	return typeof value === "string" && /^fp_[\w.-]{1,64}$/.test(value) ? value : undefined;
}

function citations(value: unknown): string[] | undefined {
	if (!Array.isArray(value)) return undefined;
	const pages = value.slice(0, ITEMS_MAX).flatMap((item) => address(item) ?? []);
	return pages.length === 0 ? undefined : pages;
}

/** `[{title, url, date, last_updated, snippet}]`. */
function searchResults(value: unknown): JsonObject[] | undefined {
	return listOf(value, (item) => {
		const url = address(item.url);
		return url === undefined
			? undefined
			: { ...texts(item, "title"), url, ...texts(item, "date", "last_updated", "snippet") };
	});
}

/** `[{type: "reasoning.…", text | summary | data, signature, id, format, index}]`. */
function reasoningDetails(value: unknown): JsonObject[] | undefined {
	return listOf(value, (item) => {
		const type = short(item.type);
		if (type === undefined || !type.startsWith("reasoning.")) return undefined;
		const index = asCount(item.index, Number.MAX_SAFE_INTEGER);
		return {
			type,
			...texts(item, "text", "summary", "data", "signature", "id", "format"),
			...(index === undefined ? {} : { index }),
		};
	});
}

/** `[{type: "thinking", thinking, signature} | {type: "redacted_thinking", data}]`. */
function thinkingBlocks(value: unknown): JsonObject[] | undefined {
	return listOf(value, (item) => {
		const { type } = item;
		if (type !== "thinking" && type !== "redacted_thinking") return undefined;
		return { type, ...texts(item, "thinking", "data", "signature") };
	});
}

/** `{<vendor>: {thought_signature, thought}}`. */
function extraContent(value: unknown): JsonObject | undefined {
	const entries = Object.entries(asObject(value) ?? {}).slice(0, ITEMS_MAX);
	const vendors = entries.flatMap(([vendor, content]) => {
		const source = asObject(content);
		if (source === undefined || !/^[a-z_]{1,32}$/.test(vendor)) return [];
		const kept = {
			...texts(source, "thought_signature"),
			...(typeof source.thought === "boolean" ? { thought: source.thought } : {}),
		};
		return Object.keys(kept).length === 0 ? [] : [[vendor, kept] as const];
	});
	return vendors.length === 0 ? undefined : Object.fromEntries(vendors);
}

/** Copies cited pages, files that the model read, and references to retrieved documents. */
export function copyAnnotations(value: unknown): JsonObject[] | undefined {
	return listOf(value, (item) => {
		if (item.type === "file") return fileAnnotation(asObject(item.file));
		if (item.type === "reference") return { type: "reference", reference_ids: references(item.reference_ids) };
		const cited = asObject(item.url_citation);
		const url = address(cited?.url);
		if (cited === undefined || url === undefined) return undefined;
		return {
			type: "url_citation",
			url_citation: {
				start_index: asCount(cited.start_index, Number.MAX_SAFE_INTEGER) ?? 0,
				end_index: asCount(cited.end_index, Number.MAX_SAFE_INTEGER) ?? 0,
				url,
				title: asText(cited.title) ?? "",
				...texts(cited, "content"),
			},
		};
	});
}

function fileAnnotation(file: JsonObject | undefined): JsonObject | undefined {
	const hash = short(file?.hash);
	if (file === undefined || hash === undefined) return undefined;
	const parts = asObjects(file.content)
		.slice(0, PARTS_MAX)
		.flatMap((part) => {
			const text = asText(part.text);
			return part.type === "text" && text !== undefined ? [{ type: "text", text }] : [];
		});
	return { type: "file", file: { hash, ...texts(file, "name"), content: parts } };
}

function references(value: unknown): (number | string)[] {
	if (!Array.isArray(value)) return [];
	return value.slice(0, ITEMS_MAX).flatMap((id) => asCount(id, Number.MAX_SAFE_INTEGER) ?? short(id) ?? []);
}

function audio(value: unknown): JsonObject | undefined {
	const source = asObject(value);
	if (source === undefined) return undefined;
	const expiresAt = asCount(source.expires_at, Number.MAX_SAFE_INTEGER);
	const kept = {
		...texts(source, "id", "data"),
		...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
		...texts(source, "transcript"),
	};
	return Object.keys(kept).length === 0 ? undefined : kept;
}

/** `[{type: "image_url", image_url: {url}, index}]`: images that the model made. */
function images(value: unknown): JsonObject[] | undefined {
	return listOf(value, (item) => {
		const url = asText(asObject(item.image_url)?.url);
		if (url === undefined || !(url.startsWith("data:image/") || address(url))) return undefined;
		const index = asCount(item.index, Number.MAX_SAFE_INTEGER);
		return { type: "image_url", image_url: { url }, ...(index === undefined ? {} : { index }) };
	});
}

function listOf(value: unknown, read: (item: JsonObject) => JsonObject | undefined): JsonObject[] | undefined {
	if (!Array.isArray(value) || value.length === 0) return undefined;
	const items = asObjects(value.slice(0, ITEMS_MAX)).flatMap((item): JsonObject[] => {
		const rebuilt = read(item);
		return rebuilt === undefined ? [] : [rebuilt];
	});
	return items.length === 0 ? undefined : items;
}

function texts(source: JsonObject, ...names: readonly string[]): Record<string, string> {
	const kept: Record<string, string> = {};
	for (const name of names) {
		const value = source[name];
		if (typeof value === "string") kept[name] = value;
	}
	return kept;
}

function short(value: unknown): string | undefined {
	return typeof value === "string" && value !== "" && value.length <= SHORT_CHARS_MAX ? value : undefined;
}

/** URL of a web page; undefined for a server's file and for a URL without a host. */
function address(value: unknown): string | undefined {
	return typeof value === "string" && value.length <= ADDRESS_CHARS_MAX && /^https?:\/\//i.test(value)
		? value
		: undefined;
}
