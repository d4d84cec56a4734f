import { t } from "./texts.tsx";
/** The only client of the server: JSON over same-origin fetch, failures as `ApiError`. */

/** A refusal, or an unreachable server (`status` 0). */
export class ApiError extends Error {
	override readonly name = "ApiError" as const;
	readonly status: number;
	readonly code: string;
	readonly param: string | null;
	readonly requestId: string | null;

	constructor(
		message: string,
		facts: { status: number; code: string; param?: string | null; requestId?: string | null },
	) {
		super(message);
		this.status = facts.status;
		this.code = facts.code;
		this.param = facts.param ?? null;
		this.requestId = facts.requestId ?? null;
	}
}

/** For cases that should not happen. */
export const pageFault = (): ApiError =>
	new ApiError(t("This page has a fault of its own. Reload it."), { status: 0, code: "page_fault" });

export type Query = Readonly<Record<string, string | number | null | undefined>>;

export const UNREACHABLE = t("The service could not be reached. Check the connection and try again.");
export const FILE_UNREADABLE = t("The browser cannot read this file. Choose it again.");
const UNREADABLE = t("The service sent an answer that this page cannot read.");

export async function requestJson<T>(
	method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
	path: string,
	options: { query?: Query; body?: unknown; signal?: AbortSignal | undefined } = {},
): Promise<T> {
	const init: RequestInit = { method, credentials: "same-origin", headers: { accept: "application/json" } };
	if (method !== "GET") {
		init.headers = { accept: "application/json", "content-type": "application/json" };
		init.body = JSON.stringify(options.body ?? {});
	}
	if (options.signal) init.signal = options.signal;
	const response = await send(path + queryText(options.query), init);
	const text = await response.text();
	const body = parse(text);
	if (!response.ok) throw apiErrorOf(response, body);
	if (body === undefined) throw new ApiError(UNREADABLE, { status: response.status, code: "unreadable" });
	return body as T;
}

/** Bytes of a file, with a content type that a form of another site cannot send. */
export async function sendFile<T>(path: string, query: Query, file: Blob): Promise<T> {
	const headers = { accept: "application/json", "content-type": "application/json" };
	const bytes = await file.arrayBuffer().catch(() => {
		throw new ApiError(FILE_UNREADABLE, { status: 0, code: "file_unreadable" });
	});
	const response = await send(path + queryText(query), {
		method: "POST",
		credentials: "same-origin",
		headers,
		body: bytes,
	});
	const body = parse(await response.text());
	if (!response.ok) throw apiErrorOf(response, body);
	return body as T;
}

async function send(url: string, init: RequestInit): Promise<Response> {
	try {
		return await fetch(url, init);
	} catch (error) {
		if (init.signal?.aborted) throw error;
		throw new ApiError(UNREACHABLE, { status: 0, code: "unreachable" });
	}
}

/** From either shape: ours (`{error: {…}}`) or that of the sign-in routes (`{message, code}`). */
export function apiErrorOf(response: Response, body: unknown): ApiError {
	const outer = record(body);
	const inner = record(outer.error);
	const shown = Object.keys(inner).length > 0 ? inner : outer;
	const requestId = response.headers.get("x-request-id") ?? text(shown.request_id);
	return new ApiError(
		text(shown.message) ?? t("The service answered with status {status}.", { status: response.status }),
		{
			status: response.status,
			code: text(shown.code) ?? `status_${response.status}`,
			param: text(shown.param),
			requestId,
		},
	);
}

export function queryText(query: Query = {}): string {
	const params = new URLSearchParams();
	for (const [name, value] of Object.entries(query)) {
		if (value !== null && value !== undefined && value !== "") params.set(name, String(value));
	}
	const joined = params.toString();
	return joined === "" ? "" : `?${joined}`;
}

function parse(text: string): unknown {
	if (text === "") return {};
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}

const record = (value: unknown): Record<string, unknown> =>
	typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
const text = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
