import type { Clock } from "../base/clock.ts";

export type JsonRecord = Readonly<Record<string, unknown>>;

/** A server on loopback that may be anything: every answer is short, in time, and a JSON object, or it is none. */
export interface LocalServer {
	readonly origin: string;
	/** Undefined unless it answers 200 with a JSON object. Rejects if nobody answers in time. */
	getJson(path: string): Promise<{ body: JsonRecord; serverHeader: string } | undefined>;
	postJson(path: string, body: JsonRecord): Promise<{ body: JsonRecord; serverHeader: string } | undefined>;
}

const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

export function localServer(clock: Clock, options: { origin: string; timeoutMs: number }): LocalServer {
	const { origin } = options;

	async function ask(path: string, init: RequestInit) {
		const abort = new AbortController();
		const cancel = clock.after(options.timeoutMs, () => abort.abort());
		try {
			const response = await fetch(`${origin}${path}`, {
				...init,
				signal: abort.signal,
				redirect: "manual",
				keepalive: false,
				proxy: "",
			});
			if (response.status !== 200) {
				await response.body?.cancel();
				return undefined;
			}
			const text = await readBounded(response);
			const body = text === undefined ? undefined : parseRecord(text);
			return body && { body, serverHeader: response.headers.get("server") ?? "" };
		} finally {
			cancel();
			abort.abort();
		}
	}

	return {
		origin,
		getJson: (path) => ask(path, {}),
		postJson: (path, body) =>
			ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
	};
}

export function recordOf(value: unknown): JsonRecord {
	return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonRecord) : {};
}

export function recordsOf(value: unknown): JsonRecord[] {
	return Array.isArray(value) ? value.map(recordOf) : [];
}

/** Undefined if it is longer than any list of models is. */
async function readBounded(response: Response): Promise<string | undefined> {
	const chunks: Uint8Array[] = [];
	let bytes = 0;
	for await (const chunk of response.body ?? []) {
		bytes += chunk.byteLength;
		if (bytes > ANSWER_BYTES_MAX) return undefined;
		chunks.push(chunk);
	}
	return Buffer.concat(chunks).toString("utf8");
}

function parseRecord(text: string): JsonRecord | undefined {
	try {
		const value: unknown = JSON.parse(text);
		return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonRecord) : undefined;
	} catch {
		return undefined;
	}
}
