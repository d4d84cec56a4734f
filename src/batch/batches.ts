import { Fault } from "../base/fault.ts";
import { newId } from "../base/id.ts";
import type { CatalogSnapshot } from "../catalog/model.ts";
import type { Files } from "../files/files.ts";
import type { BatchBooks } from "./batch-books.ts";
import { type BatchRecord, hasBatchEnded } from "./batch-record.ts";

export interface BatchRequest extends Pick<BatchRecord, "inputFileId" | "endpoint" | "metadata" | "outputExpiresS"> {
	/** A repeated call with the same API key and idempotency key returns the existing batch. */
	readonly idempotencyKey: string | null;
}

export type Batches = ReturnType<typeof createBatches>;

const WINDOW_MS = 24 * 3600_000;
/** Maximum number of open batches of an account. */
const OPEN_MAX = 50;
/** Largest input in bytes; files for other purposes may be larger. */
const INPUT_BYTES_MAX = 200 * 1024 * 1024;

/** Fault idempotency_mismatch if the idempotency key belongs to an earlier, different request. */
function assertIsOf(request: BatchRequest, batch: BatchRecord): void {
	const isIt =
		batch.endpoint === request.endpoint &&
		batch.inputFileId === request.inputFileId &&
		batch.outputExpiresS === request.outputExpiresS &&
		Bun.deepEquals(batch.metadata, request.metadata);
	if (!isIt) throw new Fault("idempotency_mismatch", "This `Idempotency-Key` was used for another batch.");
}

export function createBatches(deps: {
	books: BatchBooks;
	files: Pick<Files, "find">;
	snapshot(): CatalogSnapshot;
	/** Called when a batch is created, or when its cancellation is requested. */
	wake(batch: BatchRecord): void;
}) {
	const { books } = deps;

	async function madeBefore(keyId: string, request: BatchRequest): Promise<BatchRecord | undefined> {
		if (request.idempotencyKey === null) return undefined;
		const batch = await books.findRepeated(keyId, request.idempotencyKey);
		if (batch !== undefined) assertIsOf(request, batch);
		return batch;
	}

	const areOffered = () => [...deps.snapshot().models.values()].some(({ batch }) => batch !== undefined);

	return {
		areOffered,
		/**
		 * Creates a batch. Faults: service_unavailable (no deployment), not_found (input), invalid_request,
		 * rate_limit_exceeded (too many open), idempotency_mismatch.
		 */
		async create(owner: { accountId: string; keyId: string }, request: BatchRequest): Promise<BatchRecord> {
			if (!areOffered()) throw batchesUnavailable();
			const input = await deps.files.find(owner.accountId, request.inputFileId);
			// If the input is deleted, only a repeated call can succeed: it returns the existing batch.
			const made = input === undefined ? await madeBefore(owner.keyId, request) : undefined;
			if (made !== undefined) return made;
			if (input === undefined) throw new Fault("not_found", "There is no such file.", { param: "input_file_id" });
			if (input.purpose !== "batch") throw badInput("The file's purpose must be `batch`.");
			if (input.bytes > INPUT_BYTES_MAX) throw badInput("The input file of a batch can have at most 200 MB.");
			const batch = await books.create(
				{ id: newId("batch"), ...owner, ...request, completionWindow: "24h", windowMs: WINDOW_MS },
				OPEN_MAX,
			);
			if (batch === undefined) {
				throw new Fault("rate_limit_exceeded", "An account can have at most {count} unfinished batches.", {
					values: { count: OPEN_MAX },
					retryAfterS: 60,
				});
			}
			assertIsOf(request, batch);
			deps.wake(batch);
			return batch;
		},
		async find(accountId: string, id: string): Promise<BatchRecord> {
			const batch = await books.find(accountId, id);
			if (batch === undefined) throw unknown();
			return batch;
		},
		list: (accountId: string, { after, limit }: { after: string | null; limit: number }) =>
			books.list(accountId, after, limit),
		/** Requests cancellation. Fault not_found; conflict if the batch has ended. */
		async cancel(accountId: string, id: string): Promise<BatchRecord> {
			const batch = await books.cancel(accountId, id);
			if (batch === undefined) throw unknown();
			if (hasBatchEnded(batch.state))
				throw new Fault("conflict", "The batch is {state} and cannot be cancelled.", {
					values: { state: batch.state },
				});
			deps.wake(batch);
			return batch;
		},
	};
}

export function batchesUnavailable(): Fault {
	return new Fault("service_unavailable", "Managed batches are not available: no model supports them.");
}

const unknown = (): Fault => new Fault("not_found", "There is no such batch.");

function badInput(message: string): Fault {
	return new Fault("invalid_request", message, { param: "input_file_id" });
}
