import { Fault } from "../../base/fault.ts";
import { type BatchView, batchView } from "../../batch/batch-view.ts";
import { type Batches, notOffered } from "../../batch/batches.ts";
import type { KeyEntry } from "../../keys/key-entry.ts";
import type { BodyReads } from "../body/body-reads.ts";
import { readJson } from "../body/json-body.ts";
import type { Connection } from "../connection.ts";
import { askDatabase } from "../lookups/ask-database.ts";
import { readBatchRequest } from "./batch-request.ts";

/** A page of batches in OpenAI's format. */
export interface BatchList {
	readonly object: "list";
	readonly data: readonly BatchView[];
	readonly first_id: string | null;
	readonly last_id: string | null;
	readonly has_more: boolean;
}

const BODY_BYTES_MAX = 64 * 1024;
const LIST_DEFAULT = 20;
const LIST_MAX = 100;

/** Answers of /v1/batches. All keys of an account share its batches; a batch is charged to the key that made it. */
export function createBatchAnswers(deps: { batches: Batches; bodyReads: BodyReads }) {
	const { batches } = deps;

	/** Existing batches stay readable when no deployment takes batches; without any, the service has none. */
	async function list(request: Request, key: KeyEntry): Promise<BatchList> {
		const query = new URL(request.url).searchParams;
		const limit = limitOf(query.get("limit"));
		const after = query.get("after");
		const found = await askDatabase(() => batches.list(key.accountId, { after, limit: limit + 1 }));
		if (found.length === 0 && !batches.areOffered()) throw notOffered();
		const data = found.slice(0, limit).map(batchView);
		return {
			object: "list",
			data,
			first_id: data[0]?.id ?? null,
			last_id: data.at(-1)?.id ?? null,
			has_more: found.length > limit,
		};
	}

	return {
		/** POST /v1/batches. */
		async create(connection: Connection, key: KeyEntry, checkAgain: () => Promise<void>): Promise<BatchView> {
			if (!batches.areOffered()) throw notOffered();
			const { value } = await readJson(connection, BODY_BYTES_MAX, deps.bodyReads);
			const wanted = readBatchRequest(value, connection.request.headers.get("idempotency-key"));
			await checkAgain();
			const owner = { accountId: key.accountId, keyId: key.id };
			return batchView(await askDatabase(() => batches.create(owner, wanted)));
		},
		list,
		/** GET /v1/batches/{id}. */
		retrieve: (request: Request, key: KeyEntry): Promise<BatchView> => one(request, key, "find"),
		/** POST /v1/batches/{id}/cancel. */
		cancel: (request: Request, key: KeyEntry): Promise<BatchView> => one(request, key, "cancel"),
	};

	async function one(request: Request, key: KeyEntry, verb: "find" | "cancel"): Promise<BatchView> {
		const id = new URL(request.url).pathname.split("/")[3] ?? "";
		try {
			return batchView(await askDatabase(() => batches[verb](key.accountId, id)));
		} catch (error) {
			if (error instanceof Fault && error.code === "not_found" && !batches.areOffered()) throw notOffered();
			throw error;
		}
	}
}

/** Fault invalid_request. */
function limitOf(text: string | null): number {
	const limit = text === null ? LIST_DEFAULT : Number(text);
	if (Number.isInteger(limit) && limit >= 1 && limit <= LIST_MAX) return limit;
	throw new Fault("invalid_request", `\`limit\` must be a number from 1 to ${LIST_MAX}.`, { param: "limit" });
}
