import type { Clock } from "../base/clock.ts";

export type JsonRecord = Readonly<Record<string, unknown>>;

type AskInit = Pick<RequestInit, "method" | "body"> & { headers?: Record<string, string> };

const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

export type LocalServer = ReturnType<typeof localServer>;

/** HTTP client for an untrusted server: accepts only short JSON objects that arrive in time. */
export function localServer(
	clock: Clock,
	options: { origin: string; timeoutMs: number; headers?: Readonly<Record<string, string>> },
) {
	const { origin } = options;

	async function ask(path: string, init: AskInit) {
		const abort = new AbortController();
		const cancel = clock.after(options.timeoutMs, () => abort.abort());
		try {
			const response = await fetch(`${origin}${path}`, {
				...init,
				headers: { ...options.headers, ...init.headers },
				signal: abort.signal,
				redirect: "manual",
				keepalive: false,
				proxy: "",
			});
			const text = await readBounded(response);
			const body = text === undefined ? undefined : parseRecord(text);
			return { status: response.status, body, serverHeader: response.headers.get("server") ?? "" };
		} finally {
			cancel();
			abort.abort();
		}
	}

	async function askJson(path: string, init: AskInit) {
		const { status, body, serverHeader } = await ask(path, init);
		return status === 200 && body !== undefined ? { body, serverHeader } : undefined;
	}

	return {
		origin,
		/** Rejects without a response in time. `body` is undefined unless it is a JSON object. */
		get: (path: string) => ask(path, {}),
		/** Like `get`, but undefined unless the status is 200 and the body is a JSON object. */
		getJson: (path: string) => askJson(path, {}),
		postJson: (path: string, body: JsonRecord) =>
			askJson(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
	};
}

export function asRecord(value: unknown): JsonRecord {
	return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonRecord) : {};
}

export const asRecords = (value: unknown): JsonRecord[] => (Array.isArray(value) ? value.map(asRecord) : []);

/** Returns the body as text; undefined if it is longer than any list of models. */
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
