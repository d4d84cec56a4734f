import { t } from "./texts.tsx";

/** The pages' HTTP client: JSON over same-origin `fetch`. All failures are `ApiError`s. */

/** An error response, or an unreachable server (`status` 0). */
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

export const pageFault = (): ApiError =>
	new ApiError(t("Something went wrong on this page. Reload it."), { status: 0, code: "page_fault" });

export const unreachableError = (): ApiError =>
	new ApiError(t("The service could not be reached. Check the connection and try again."), {
		status: 0,
		code: "unreachable",
	});

/** Sends a POST with a JSON body, or a GET without one. */
export async function requestJson<T>(path: string, body?: unknown): Promise<T> {
	const response = await sendRequest(path, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
	return response.json() as Promise<T>;
}

/** Sends a request. A form of another site cannot set this content type. Without a response throws `lost()`. */
export async function sendRequest(url: string, init: RequestInit, lost = unreachableError): Promise<Response> {
	const headers = { accept: "application/json", "content-type": "application/json" };
	const response = await fetch(url, { headers, ...init }).catch((error) => {
		throw init.signal?.aborted ? error : lost();
	});
	if (response.ok) return response;
	throw parseApiError(response, await response.json().catch(() => undefined));
}

/** Parses an error in the console's format (`{error: {…}}`) or the sign-in library's (`{message, code}`). */
export function parseApiError(response: Response, body: unknown): ApiError {
	const outer = record(body);
	const shown: Record<string, unknown> = { ...outer, ...record(outer.error) };
	return new ApiError(
		text(shown.message) ?? t("The service answered with status {status}.", { status: response.status }),
		{
			status: response.status,
			code: text(shown.code) ?? `status_${response.status}`,
			param: text(shown.param),
			requestId: response.headers.get("x-request-id") ?? text(shown.request_id),
		},
	);
}

type Query = Readonly<Record<string, string | number | null | undefined>>;
type Given<T> = { [K in keyof T]?: Exclude<T[K], null | undefined | ""> };

export function omitUndefined<T extends object>(query: T): Given<T> {
	const set = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
	return Object.fromEntries(set) as Given<T>;
}

export const queryText = (query: Query): string =>
	`?${new URLSearchParams(Object.entries(omitUndefined(query)).map(([name, value]) => [name, String(value)]))}`;

const record = (value: unknown): Record<string, unknown> =>
	typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
const text = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
