/** Copies structured values of an answer member by member. Each function returns undefined if nothing remains. */
import { asCount, asObject, asObjects, asText, type JsonObject } from "../wire-value.ts";

/** Limits per answer; items above them are dropped. */
const ITEMS_MAX = 256;
const PARTS_MAX = 4_096;
const SHORT_CHARS_MAX = 256;
const ADDRESS_CHARS_MAX = 8_192;

export function serviceTier(value: unknown): string | undefined {
	return typeof value === "string" && /^[a-z_]{1,32}$/.test(value) ? value : undefined;
}

export function fingerprint(value: unknown): string | undefined {
	return typeof value === "string" && /^fp_[\w.-]{1,64}$/.test(value) ? value : undefined;
}

export function citations(value: unknown): string[] | undefined {
	if (!Array.isArray(value)) return undefined;
	const pages = value.slice(0, ITEMS_MAX).flatMap((item) => address(item) ?? []);
	return pages.length === 0 ? undefined : pages;
}

/** `[{title, url, date, last_updated, snippet}]`. */
export function searchResults(value: unknown): JsonObject[] | undefined {
	return listOf(value, (item) => {
		const url = address(item.url);
		return url === undefined
			? undefined
			: { ...texts(item, "title"), url, ...texts(item, "date", "last_updated", "snippet") };
	});
}

/** `[{type: "reasoning.…", text | summary | data, signature, id, format, index}]`. */
export function reasoningDetails(value: unknown): JsonObject[] | undefined {
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
export function thinkingBlocks(value: unknown): JsonObject[] | undefined {
	return listOf(value, (item) => {
		const { type } = item;
		if (type !== "thinking" && type !== "redacted_thinking") return undefined;
		return { type, ...texts(item, "thinking", "data", "signature") };
	});
}

/** `{<vendor>: {thought_signature, thought}}`. */
export function extraContent(value: unknown): JsonObject | undefined {
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
export function annotations(value: unknown): JsonObject[] | undefined {
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

export function audio(value: unknown): JsonObject | undefined {
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
export function images(value: unknown): JsonObject[] | undefined {
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
