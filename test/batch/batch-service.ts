import { requestsTo } from "../support/requests.ts";
import { chatModel, type TestService, withService } from "../support/service.ts";
import { type UpstreamServer, withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

export interface ShownBatch {
	readonly id: string;
	readonly status: string;
	readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number };
	readonly output_file_id: string | null;
	readonly error_file_id: string | null;
	readonly errors: {
		readonly data: readonly { code: string; line: number | null; message: string; param: string | null }[];
	} | null;
	readonly paused: { readonly code: string; readonly message: string; readonly since: number } | null;
	readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
	readonly cost_usd: string;
	readonly [field: string]: unknown;
}

export interface ShownLine {
	readonly id: string;
	readonly custom_id: string;
	readonly response: {
		readonly status_code: number;
		readonly request_id: string;
		readonly body: Record<string, unknown>;
	} | null;
	readonly error: { readonly code: string; readonly message: string; readonly request_id?: string } | null;
}

/** Batch prices are half of the usual prices: USD 0.5 per million input tokens, USD 1 per million output tokens. */
const BATCH_MODEL = `    batch_rates: { input: "0.5", cached_input: "0.25", output: "1" }`;

export function batchModel(url: string, more: { id?: string; dialect?: string; extra?: string } = {}): string {
	const text = chatModel({ url, ...more, extra: `${BATCH_MODEL}\n${more.extra ?? ""}` });
	return text.replace("modes: [chat, completions]", "modes: [chat, completions, batch]");
}

export function chatLine(customId: string, content = customId, body: Record<string, unknown> = {}): string {
	return JSON.stringify({
		custom_id: customId,
		method: "POST",
		url: "/v1/chat/completions",
		body: { model: "test-model", max_tokens: 8, messages: [{ role: "user", content }], ...body },
	});
}

type Input = readonly string[] | string | Uint8Array<ArrayBuffer>;

export const isOver = ({ status }: ShownBatch) => ["completed", "failed", "expired", "cancelled"].includes(status);

export async function withBatches(
	options: { dialect?: "openai" | "vllm"; limits?: string; maxConcurrency?: number } = {},
) {
	const dialect = options.dialect ?? "openai";
	const upstream = withUpstream(dialect);
	const places = options.maxConcurrency === undefined ? "" : `\n        max_concurrency: ${options.maxConcurrency}`;
	const models = `${batchModel(upstream.url, { dialect })}${places}`;
	const service = await withService({ models, ...(options.limits ? { limits: options.limits } : {}) });
	return batchesOf(service, upstream);
}

/** Batches of a service that runs in a separate process. */
export function batchesAt(url: string) {
	return batchesOf({ url, ...requestsTo(url) } as TestService, undefined as never);
}

export function batchesOf(service: TestService, upstream: UpstreamServer) {
	const json = async <T>(response: Response): Promise<T> => {
		const text = await response.text();
		if (!response.ok) throw new Error(`${response.status} ${text}`);
		return JSON.parse(text) as T;
	};
	const batches = {
		service,
		upstream,
		async upload(secret: string, lines: Input, more: Record<string, string> = {}): Promise<string> {
			const form = new FormData();
			for (const [name, value] of Object.entries({ purpose: "batch", ...more })) form.set(name, value);
			const isWhole = typeof lines === "string" || lines instanceof Uint8Array;
			const text = isWhole ? lines : lines.map((line) => `${line}\n`).join("");
			form.set("file", new File([text], "in.jsonl"));
			return (await json<{ id: string }>(await service.post("/v1/files", secret, form))).id;
		},
		async create(secret: string, fileId: string, more: object = {}): Promise<ShownBatch> {
			const body = { input_file_id: fileId, endpoint: "/v1/chat/completions", completion_window: "24h", ...more };
			return json(await service.post("/v1/batches", secret, body));
		},
		get: async (secret: string, id: string): Promise<ShownBatch> =>
			json(await service.get(`/v1/batches/${id}`, secret)),
		async until(secret: string, id: string, is: (batch: ShownBatch) => boolean, what: string) {
			let last: ShownBatch | undefined;
			await waitFor(
				async () => {
					last = await batches.get(secret, id);
					return is(last);
				},
				`the batch to be ${what}`,
				30_000,
			).catch((error) => {
				throw new Error(`${error}: ${JSON.stringify(last)}`);
			});
			return last as ShownBatch;
		},
		async run(secret: string, lines: Input, more: object = {}): Promise<ShownBatch> {
			const batch = await batches.create(secret, await batches.upload(secret, lines), more);
			return batches.until(secret, batch.id, isOver, "over");
		},
		async lines(secret: string, fileId: string | null): Promise<ShownLine[]> {
			if (fileId === null) return [];
			const response = await service.get(`/v1/files/${fileId}/content`, secret);
			if (!response.ok) throw new Error(await response.text());
			const text = await response.text();
			return text
				.split("\n")
				.filter(Boolean)
				.map((line) => JSON.parse(line) as ShownLine);
		},
		cancel: (secret: string, id: string) => service.post(`/v1/batches/${id}/cancel`, secret, {}),
	};
	return batches;
}
