import { appendFileSync, closeSync, openSync, renameSync, statSync, writeSync } from "node:fs";
import { Fault, type FaultCode } from "../base/fault.ts";

/** The fields of a batch that the command shows. */
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

/** Files and batches over the public API. Each failed call throws a Fault with the service's message. */
export interface BatchClient {
	upload(filename: string, lines: AsyncIterable<string>): Promise<string>;
	create(inputFileId: string, endpoint: string, idempotencyKey: string): Promise<string>;
	find(batchId: string): Promise<RemoteBatch>;
	/** Resumes an interrupted download. The file gets its name only when it is complete. */
	download(fileId: string, path: string): Promise<void>;
}

const UPLOAD_PIECE_CHARS = 256 * 1024;

export function createBatchClient(options: { url: string; apiKey: string }): BatchClient {
	const { url, apiKey } = options;

	async function ask(path: string, init: RequestInit = {}): Promise<Response> {
		const headers = { ...(init.headers as Record<string, string>), authorization: `Bearer ${apiKey}` };
		let response: Response;
		try {
			response = await fetch(`${url}${path}`, { ...init, headers, redirect: "manual" });
		} catch (cause) {
			// A fault in the caller's own lines is thrown unchanged.
			if (cause instanceof Fault) throw cause;
			throw new Fault("service_unavailable", `No service answers at ${url}.`, { cause });
		}
		if (response.ok) return response;
		throw await faultOfAnswer(response);
	}

	async function askJson<T>(path: string, init?: RequestInit): Promise<T> {
		return (await (await ask(path, init)).json()) as T;
	}

	return {
		async upload(filename, lines) {
			const boundary = `lines-${crypto.randomUUID()}`;
			let problem: unknown;
			const body = streamOf(formOf(boundary, filename, lines), (error) => {
				problem = error;
			});
			const headers = { "content-type": `multipart/form-data; boundary=${boundary}` };
			try {
				return (await askJson<{ id: string }>("/v1/files", { method: "POST", headers, body })).id;
			} catch (error) {
				throw problem ?? error;
			}
		},
		async create(inputFileId, endpoint, idempotencyKey) {
			const body = JSON.stringify({ input_file_id: inputFileId, endpoint, completion_window: "24h" });
			const headers = { "content-type": "application/json", "idempotency-key": idempotencyKey };
			return (await askJson<{ id: string }>("/v1/batches", { method: "POST", headers, body })).id;
		},
		find: (batchId) => askJson<RemoteBatch>(`/v1/batches/${batchId}`),
		async download(fileId, path) {
			const unfinished = `${path}.part-${fileId}`;
			const { bytes } = await askJson<{ bytes: number }>(`/v1/files/${fileId}`);
			const have = statSync(unfinished, { throwIfNoEntry: false })?.size ?? 0;
			if (have === 0) appendFileSync(unfinished, "");
			if (have < bytes) {
				const response = await ask(`/v1/files/${fileId}/content`, { headers: { range: `bytes=${have}-` } });
				await append(unfinished, response);
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

function streamOf(texts: AsyncGenerator<string, void>, onError: (error: unknown) => void): ReadableStream<Uint8Array> {
	const encoder = new TextEncoder();
	return new ReadableStream<Uint8Array>({
		async pull(controller) {
			try {
				const { done, value } = await texts.next();
				if (done) controller.close();
				else controller.enqueue(encoder.encode(value));
			} catch (error) {
				onError(error);
				controller.error(error);
			}
		},
		async cancel() {
			await texts.return();
		},
	});
}

async function faultOfAnswer(response: Response): Promise<Fault> {
	const text = await response.text();
	let error: { code?: FaultCode; message?: string } | undefined;
	try {
		error = (JSON.parse(text) as { error?: { code?: FaultCode; message?: string } }).error;
	} catch {
		error = undefined;
	}
	return new Fault(error?.code ?? "upstream_error", error?.message ?? `The service answered ${response.status}.`);
}
