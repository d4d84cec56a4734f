import { appendFileSync, closeSync, createReadStream, openSync, renameSync, statSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { Fault, type FaultCode } from "../base/fault.ts";

export interface RemoteBatch {
	readonly id: string;
	readonly status: string;
	readonly output_file_id: string | null;
	readonly error_file_id: string | null;
	readonly in_progress_at: number | null;
	/** Unix seconds. */
	readonly expires_at: number;
	readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number };
	readonly errors: { readonly data: readonly { readonly message: string; readonly line: number | null }[] } | null;
	readonly paused: { readonly message: string } | null;
	readonly cost_usd: string;
}

const UPLOAD_PIECE_CHARS = 256 * 1024;

export type BatchClient = ReturnType<typeof createBatchClient>;

/** Client for the API's files and batches. An error status throws a Fault with the service's message. */
export function createBatchClient({ url, apiKey }: { url: string; apiKey: string }) {
	async function ask(path: string, init: RequestInit = {}): Promise<Response> {
		const headers = { ...(init.headers as Record<string, string>), authorization: `Bearer ${apiKey}` };
		let response: Response;
		try {
			response = await fetch(`${url}${path}`, { ...init, headers, redirect: "manual" });
		} catch (cause) {
			// The failure is a fault of `lines`, such as an invalid input line, and not of the connection.
			if (cause instanceof Fault) throw cause;
			throw new Fault("service_unavailable", `The service at ${url} does not answer.`, { cause });
		}
		if (response.ok) return response;
		throw await faultOfAnswer(response);
	}

	async function askJson<T>(path: string, init?: RequestInit): Promise<T> {
		return (await (await ask(path, init)).json()) as T;
	}

	return {
		async upload(filename: string, lines: AsyncIterable<string>): Promise<string> {
			const boundary = `lines-${crypto.randomUUID()}`;
			const headers = { "content-type": `multipart/form-data; boundary=${boundary}` };
			// Bun's `fetch` can send an async iterable, but the DOM's types do not allow it.
			const body = formOf(boundary, filename, lines) as unknown as ReadableStream;
			return (await askJson<{ id: string }>("/v1/files", { method: "POST", headers, body })).id;
		},
		async create(inputFileId: string, endpoint: string, idempotencyKey: string): Promise<string> {
			const body = JSON.stringify({ input_file_id: inputFileId, endpoint, completion_window: "24h" });
			const headers = { "content-type": "application/json", "idempotency-key": idempotencyKey };
			return (await askJson<{ id: string }>("/v1/batches", { method: "POST", headers, body })).id;
		},
		find: (batchId: string) => askJson<RemoteBatch>(`/v1/batches/${batchId}`),
		/** Downloads a file; resumes an interrupted download. The data is in a temporary file until it is complete. */
		async download(fileId: string, path: string): Promise<void> {
			const unfinished = `${path}.part-${fileId}`;
			const { bytes } = await askJson<{ bytes: number }>(`/v1/files/${fileId}`);
			const have = statSync(unfinished, { throwIfNoEntry: false })?.size ?? 0;
			if (have === 0) appendFileSync(unfinished, "");
			if (have < bytes) {
				const headers = { range: `bytes=${have}-` };
				await append(unfinished, await ask(`/v1/files/${fileId}/content`, { headers }));
			}
			renameSync(unfinished, path);
		},
	};
}

async function append(path: string, response: Response): Promise<void> {
	const file = openSync(path, response.status === 206 ? "a" : "w");
	try {
		for await (const piece of response.body ?? []) writeSync(file, piece);
	} finally {
		closeSync(file);
	}
}

async function* formOf(boundary: string, filename: string, lines: AsyncIterable<string>): AsyncGenerator<string, void> {
	const name = filename.replace(/[^\w. -]/g, "_");
	const field = (disposition: string) => `--${boundary}\r\ncontent-disposition: form-data; ${disposition}\r\n\r\n`;
	yield `${field('name="purpose"')}batch\r\n${field(`name="file"; filename="${name}"`)}`;
	let gathered = "";
	for await (const line of lines) {
		gathered += line;
		if (gathered.length < UPLOAD_PIECE_CHARS) continue;
		yield gathered;
		gathered = "";
	}
	yield `${gathered}\r\n--${boundary}--\r\n`;
}

async function faultOfAnswer(response: Response): Promise<Fault> {
	const text = await response.text();
	let error: { code?: FaultCode; message?: string } | undefined;
	try {
		error = (JSON.parse(text) as { error?: { code?: FaultCode; message?: string } }).error;
	} catch {
		error = undefined;
	}
	return new Fault(
		error?.code ?? "upstream_error",
		error?.message ?? `The service answered with status ${response.status}.`,
	);
}

/** Values for fields that an input line omits. */
export interface LineDefaults {
	readonly endpoint: string;
	/** Model for lines without a model; undefined: such lines stay unchanged. */
	readonly model: string | undefined;
}

/**
 * Yields the lines of a batch's input file, of any size, one by one. A line with only a request body becomes a complete
 * line, with a custom id such as `line-7`. Fault `invalid_request` names the first line that is not a JSON object.
 */
export async function* inputLines(path: string, defaults: LineDefaults): AsyncGenerator<string, void> {
	let number = 0;
	for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
		number += 1;
		// Removes the byte order mark, which Windows editors write at the start of a file.
		const plain = number === 1 ? text.replace(/^\uFEFF/, "") : text;
		if (plain.trim() === "") continue;
		yield `${JSON.stringify(completed(objectOf(plain, number), number, defaults))}\n`;
	}
}

function objectOf(text: string, number: number): Record<string, unknown> {
	let value: unknown;
	try {
		value = JSON.parse(text, asWritten);
	} catch {
		value = undefined;
	}
	if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
	throw new Fault("invalid_request", `Line ${number} is not a JSON object.`);
}

/** Keeps a number as it is written in the file: parsing would change the digits of an integer above 2^53. */
function asWritten(_name: string, value: unknown, { source }: { readonly source?: string }): unknown {
	const isOther = typeof value === "number" && source !== undefined && String(value) !== source;
	return isOther ? JSON.rawJSON(source) : value;
}

function completed(line: Record<string, unknown>, number: number, { endpoint, model }: LineDefaults) {
	const isWhole = typeof line.body === "object" && line.body !== null;
	const body = (isWhole ? line.body : line) as Record<string, unknown>;
	return {
		...(isWhole ? line : {}),
		custom_id: isWhole ? (line.custom_id ?? `line-${number}`) : `line-${number}`,
		method: isWhole ? (line.method ?? "POST") : "POST",
		url: isWhole ? (line.url ?? endpoint) : endpoint,
		body: model === undefined || body.model !== undefined ? body : { model, ...body },
	};
}
