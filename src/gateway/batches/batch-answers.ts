import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { Fault } from "../../base/fault.ts";
import { assertStorable } from "../../base/stored-text.ts";
import { BATCH_ENDPOINTS } from "../../batch/batch-record.ts";
import { type BatchView, batchView } from "../../batch/batch-view.ts";
import { type Batches, type BatchRequest, batchesUnavailable } from "../../batch/batches.ts";
import type { BodyReads } from "../body/body-reads.ts";
import { UNLIMITED_BYTES } from "../body/bytes-body.ts";
import { readJson } from "../body/json-body.ts";
import { queryDatabase } from "../lookups/ask-database.ts";
import { assertBody, mapSchema, nullish } from "../request-fields.ts";
import { pageOf, type UnmeteredCall } from "../unmetered-answer.ts";

const BODY_BYTES_MAX = 64 * 1024;
const LIST_DEFAULT = 20;
const LIST_MAX = 100;

/** Responses of /v1/batches. All keys of an account see its batches; a batch is charged to the key that created it. */
export function createBatchAnswers(deps: { batches: Batches; bodyReads: BodyReads }) {
	const { batches } = deps;

	async function one({ url, key }: UnmeteredCall, verb: "find" | "cancel"): Promise<BatchView> {
		const id = new URL(url).pathname.split("/")[3] ?? "";
		try {
			return batchView(await queryDatabase(() => batches[verb](key.accountId, id)));
		} catch (error) {
			if (error instanceof Fault && error.code === "not_found" && !batches.areOffered()) throw batchesUnavailable();
			throw error;
		}
	}

	return {
		async create({ connection, key, checkAgain }: UnmeteredCall): Promise<BatchView> {
			if (!batches.areOffered()) throw batchesUnavailable();
			const { value } = await readJson(connection, BODY_BYTES_MAX, deps.bodyReads, {
				...UNLIMITED_BYTES,
				owner: key.accountId,
			});
			const wanted = readBatchRequest(value, connection.request.headers.get("idempotency-key"));
			await checkAgain();
			const owner = { accountId: key.accountId, keyId: key.id };
			return batchView(await queryDatabase(() => batches.create(owner, wanted)));
		},
		/** If no model supports batches, an account with batches can still list them; an account without any gets a 503. */
		async list({ url, key }: UnmeteredCall) {
			const query = new URL(url).searchParams;
			const limit = limitOf(query.get("limit"));
			const page = { after: query.get("after"), limit: limit + 1 };
			const found = await queryDatabase(() => batches.list(key.accountId, page));
			if (found.length === 0 && !batches.areOffered()) throw batchesUnavailable();
			return pageOf(found.map(batchView), limit);
		},
		retrieve: (call: UnmeteredCall): Promise<BatchView> => one(call, "find"),
		cancel: (call: UnmeteredCall): Promise<BatchView> => one(call, "cancel"),
	};
}

function limitOf(text: string | null): number {
	const limit = text === null ? LIST_DEFAULT : Number(text);
	if (Number.isInteger(limit) && limit >= 1 && limit <= LIST_MAX) return limit;
	throw new Fault("invalid_request", `\`limit\` must be a number from 1 to ${LIST_MAX}.`, { param: "limit" });
}

const METADATA_MAX = 16;
const METADATA_NAME_CHARS_MAX = 64;
const METADATA_VALUE_CHARS_MAX = 512;
const KEPT_S_MIN = 3_600;
const KEPT_S_MAX = 2_592_000;

export const BatchRequestBody = Type.Object(
	{
		input_file_id: Type.String({ minLength: 1, maxLength: 128, description: "ID of a file with purpose `batch`." }),
		endpoint: Type.Union(BATCH_ENDPOINTS.map((path) => Type.Literal(path))),
		completion_window: Type.Literal("24h"),
		metadata: nullish(
			mapSchema(Type.String({ maxLength: METADATA_VALUE_CHARS_MAX }), {
				maxProperties: METADATA_MAX,
				description: `Up to ${METADATA_MAX} pairs; names of at most ${METADATA_NAME_CHARS_MAX} characters.`,
			}),
		),
		output_expires_after: nullish(
			Type.Object({
				anchor: Type.Literal("created_at"),
				seconds: Type.Integer({ minimum: KEPT_S_MIN, maximum: KEPT_S_MAX }),
			}),
		),
	},
	{ additionalProperties: true },
);

const check = TypeCompiler.Compile(BatchRequestBody);
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

export function readBatchRequest(body: unknown, idempotencyKey: string | null): BatchRequest {
	assertBody(check, body);
	const { input_file_id, endpoint, metadata, output_expires_after } = body;
	for (const name of Object.keys(metadata ?? {})) {
		if (name.length > METADATA_NAME_CHARS_MAX)
			throw new Fault("invalid_request", "A name in `metadata` has more than 64 characters.", { param: "metadata" });
	}
	assertStorable({ metadata });
	if (idempotencyKey !== null && !IDEMPOTENCY_KEY.test(idempotencyKey))
		throw new Fault("invalid_request", "`Idempotency-Key` must be 1 to 255 printable characters.");
	return {
		inputFileId: input_file_id,
		endpoint,
		metadata: metadata ?? null,
		outputExpiresS: output_expires_after?.seconds ?? null,
		idempotencyKey,
	};
}
